import { randomBytes } from 'node:crypto';
import { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { timeLimit } from '@drydock/process';
import { signInternalToken, tokenKey } from '@drydock/service/access';
import { Client, Pool } from 'undici';
import { z } from 'zod';
import {
  type Call,
  type Change,
  type CommonCode,
  type ControlProtocol,
  channelProtocol,
  HostError,
  refusalSchema,
  splitCall,
} from './control-protocol';

/**
 * The claim under which a workflow makes changes. Every change carries the claim's fence. The agent refuses a fence
 * that is lower than the highest it has seen for the same site or database.
 */
export interface Claim {
  fence: string;
  workflowId?: string;
  signal?: AbortSignal;
}

/** The fields of a change, without the fields that come from the claim. */
export type Wanted<Body extends Change> = Omit<Body, keyof Change>;

interface Asked<Answer> {
  /** The id of the site or database that the call is about, or null for a call about the agent itself. */
  id: string | null;
  answer: z.ZodType<Answer>;
}

interface Question<Answer> extends Asked<Answer> {
  body?: object;
  signal?: AbortSignal | undefined;
}

interface ClaimedChange<Answer> extends Asked<Answer> {
  claim: Claim;
  fields?: object;
}

export interface ControlClient {
  ask<Answer>(call: Call, question: Question<Answer>): Promise<Answer>;
  change<Answer>(call: Call, change: ClaimedChange<Answer>): Promise<Answer>;
  /**
   * Opens the channel of a job: a connection on which the job sends requests and the caller answers. The caller must
   * send nothing before the first request, because the agent may not have handed the connection to the job yet.
   */
  connect(call: Call, question: { id: string; signal?: AbortSignal | undefined }): Promise<Socket>;
  close(): Promise<void>;
}

export interface ControlAddress {
  url: string;
  secret: string;
  /**
   * The kind of caller that the secret belongs to: `parties` change things, and `readers` only read. The default is
   * `parties`.
   */
  role?: 'parties' | 'readers';
}

export const nothing = z.undefined();

/**
 * The caller's end of an agent's control protocol. Throws the agent's refusals with their codes. Throws `unreachable`
 * if the connection is lost, if no answer comes within `deadlineMs`, or if the answer does not follow the protocol.
 * After `unreachable` the agent may or may not have made the change. The change may be sent again; see the README of
 * this package. When the caller's signal aborts, the signal's reason is thrown.
 */
export function createControlClient<Code extends string>(
  protocol: ControlProtocol<Code>,
  { url, secret, role = 'parties', deadlineMs }: ControlAddress & { deadlineMs: number },
): ControlClient {
  const pool = new Pool(url, {
    connections: 16,
    connectTimeout: 5_000,
    headersTimeout: deadlineMs,
    bodyTimeout: deadlineMs,
  });
  const key = tokenKey(secret);
  const isKnown = (code: string): code is Code | CommonCode => Object.hasOwn(protocol.statuses, code);

  const refusalOf = (answered: unknown): HostError<Code | CommonCode> => {
    const { code, detail } = refusalSchema.parse(answered);
    return new protocol.Refusal(isKnown(code) ? code : 'internal', detail);
  };

  const signed = (method: string, path: string, text: string | undefined): { authorization: string } => {
    const bound = {
      requestId: randomBytes(12).toString('hex'),
      method,
      path,
      ...(text === undefined ? {} : { body: Buffer.from(text) }),
    };
    return { authorization: `Bearer ${signInternalToken(key, protocol[role], bound)}` };
  };

  const refusalsOf = async <T>(signal: AbortSignal | undefined, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof HostError) throw error;
      throw new protocol.Refusal('unreachable', error instanceof Error ? error.message : String(error), {
        cause: error,
      });
    }
  };

  const ask: ControlClient['ask'] = (call, { id, body, answer, signal }) => {
    const { method, path } = splitCall(call, protocol.things, id && encodeURIComponent(id));
    const text = body === undefined ? undefined : JSON.stringify(body);
    const headers = { ...signed(method, path, text), 'content-type': 'application/json' };
    const deadline = AbortSignal.any([timeLimit(deadlineMs), ...(signal ? [signal] : [])]);
    return refusalsOf(signal, async () => {
      const response = await pool.request({
        method,
        path,
        headers,
        signal: deadline,
        ...(text === undefined ? {} : { body: text }),
      });
      const answered: unknown = response.statusCode === 204 ? undefined : JSON.parse(await response.body.text());
      if (response.statusCode >= 300) throw refusalOf(answered);
      return answer.parse(answered);
    });
  };

  /** Uses a separate connection, so that no other call waits behind the channel. */
  const connect: ControlClient['connect'] = (call, { id, signal }) => {
    const { method, path } = splitCall(call, protocol.things, encodeURIComponent(id));
    const client = new Client(url, { connectTimeout: 5_000, headersTimeout: deadlineMs });
    const deadline = AbortSignal.any([timeLimit(deadlineMs), ...(signal ? [signal] : [])]);
    return refusalsOf(signal, async () => {
      const { socket } = await client.upgrade({
        method,
        path,
        headers: signed(method, path, undefined),
        protocol: channelProtocol,
        signal: deadline,
      });
      return asSocket(socket);
    });
  };

  return {
    ask,
    connect,
    change: (call, { claim, fields, ...asked }) =>
      ask(call, {
        ...asked,
        body: { ...fields, fence: claim.fence, workflow_id: claim.workflowId },
        signal: claim.signal,
      }),
    close: () => pool.close(),
  };
}

function asSocket(stream: Duplex): Socket {
  if (!(stream instanceof Socket)) throw new TypeError('a channel is a socket');
  return stream.setNoDelay(true).setKeepAlive(true, 10_000).setTimeout(0);
}
