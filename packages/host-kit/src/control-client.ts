import { randomBytes } from 'node:crypto';
import { signInternalToken, tokenKey } from '@drydock/service-kit/internal-token';
import { Pool } from 'undici';
import { z } from 'zod';
import { type Call, type Change, type ControlProtocol, refusalSchema, splitCall } from './control-protocol';
import { type CommonCode, HostError } from './host-error';

/** The workflow's claim: every change carries it, and an older one than the host has seen is refused. */
export interface Claim {
  fence: string;
  workflowId?: string;
  signal?: AbortSignal;
}

/** What a change says beside the claim. */
export type Wanted<Body extends Change> = Omit<Body, keyof Change>;

interface Asked<Answer> {
  /** Of the site, of the database. */
  id: string;
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
  close(): Promise<void>;
}

export interface ControlAddress {
  url: string;
  secret: string;
}

/** The answer of a call that has none. */
export const nothing = z.undefined();

/**
 * The caller's end of a host's control protocol. Throws the protocol's refusals: the host's by their codes, and `unreachable` for a lost connection, an
 * answer that is none or none within `deadlineMs`; then nobody knows whether a change was made, and since all are idempotent under a fence it may be sent
 * again. An abort of the caller's signal is thrown as it is.
 */
export function createControlClient<Code extends string>(
  protocol: ControlProtocol<Code>,
  { url, secret, deadlineMs }: ControlAddress & { deadlineMs: number },
): ControlClient {
  const pool = new Pool(url, { connections: 16, connectTimeout: 5_000, headersTimeout: deadlineMs, bodyTimeout: deadlineMs });
  const key = tokenKey(secret);
  const isKnown = (code: string): code is Code | CommonCode => Object.hasOwn(protocol.statuses, code);

  const refusalOf = (answered: unknown): HostError<Code | CommonCode> => {
    const { code, detail } = refusalSchema.parse(answered);
    return new protocol.Refusal(isKnown(code) ? code : 'internal', detail);
  };

  const ask: ControlClient['ask'] = async (call, { id, body, answer, signal }) => {
    const { method, path } = splitCall(call, protocol.things, encodeURIComponent(id));
    const text = body === undefined ? undefined : JSON.stringify(body);
    const bound = { requestId: randomBytes(12).toString('hex'), method, path, ...(text === undefined ? {} : { body: Buffer.from(text) }) };
    const headers = { authorization: `Bearer ${signInternalToken(key, protocol.parties, bound)}`, 'content-type': 'application/json' };
    const deadline = AbortSignal.any([AbortSignal.timeout(deadlineMs), ...(signal ? [signal] : [])]);
    try {
      const response = await pool.request({ method, path, headers, signal: deadline, ...(text === undefined ? {} : { body: text }) });
      const answered: unknown = response.statusCode === 204 ? undefined : JSON.parse(await response.body.text());
      if (response.statusCode >= 300) throw refusalOf(answered);
      return answer.parse(answered);
    } catch (error) {
      signal?.throwIfAborted();
      if (error instanceof HostError) throw error;
      throw new protocol.Refusal('unreachable', error instanceof Error ? error.message : String(error), { cause: error });
    }
  };

  return {
    ask,
    change: (call, { claim, fields, ...asked }) =>
      ask(call, { ...asked, body: { ...fields, fence: claim.fence, workflow_id: claim.workflowId }, signal: claim.signal }),
    close: () => pool.close(),
  };
}
