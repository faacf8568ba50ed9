import { randomBytes } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { signInternalToken, tokenKey, tokenKeys } from '@drydock/service/access';
import { closeServer, listen } from '@drydock/service/http';
import { createLog } from '@drydock/service/telemetry';
import { z } from 'zod';
import { type ControlClient, createControlClient } from '../src/control/control-client';
import {
  type ControlProtocol,
  changeFields,
  changeSchema,
  commonStatuses,
  HostError,
} from '../src/control/control-protocol';
import { controlRoutesOf, type Hosted, ok } from '../src/control/control-routes';
import { createControlServer } from '../src/control/control-server';
import { admitFence, Changes, Ledger } from '../src/jobs/changes';
import { jobRoutesOf } from '../src/jobs/job-routes';
import { type AnyJobKind, Jobs } from '../src/jobs/jobs';

export class BoxError extends HostError<'box_is_full' | keyof typeof commonStatuses> {
  override readonly name = 'BoxError';
}

export const protocol: ControlProtocol<'box_is_full'> = {
  things: 'boxes',
  parties: { issuer: 'tests', audience: 'box-host' },
  readers: { issuer: 'tests', audience: 'box-host-reader' },
  statuses: { ...commonStatuses, box_is_full: 409 },
  Refusal: BoxError,
};

/** Functions by which a test controls the work on boxes. */
export interface Levers {
  put: (text: string) => Promise<unknown>;
}

export interface BoxHost {
  url: string;
  secret: string;
  readerSecret: string;
  levers: Levers;
  client: ControlClient;
  clientWith(change: {
    secret?: string;
    role?: 'parties' | 'readers';
    url?: string;
    deadlineMs?: number;
  }): ControlClient;
  /**
   * Sends a call. The call's token is bound to the sent path and body, unless `signed` has another path or body for the
   * token.
   */
  send(
    method: string,
    callPath: string,
    sent: { body?: string; signed?: { path?: string; body?: string } },
  ): Promise<Response>;
  close(): Promise<void>;
}

interface BoxOptions {
  kinds?: Record<string, AnyJobKind>;
  /** The folder of an earlier agent. By default the agent has a new folder, which is removed when it closes. */
  folder?: string;
  now?: () => Date;
}

/** Starts a minimal agent, which hosts "boxes", with a real server and a real client. */
export async function startBoxHost({ kinds = {}, folder: kept, now }: BoxOptions = {}): Promise<BoxHost> {
  const folder = kept ?? (await mkdtemp(path.join(os.tmpdir(), 'drydock-boxes-')));
  const secret = randomBytes(32).toString('hex');
  const levers: Levers = { put: async (text) => ({ text }) };
  const changes = new Changes(new Ledger(folder, 'box', () => new Date()));
  const boxes: Hosted<Levers> = {
    change: (id, op, change, work) =>
      changes.run(id, op, change, async () => {
        await admitFence(path.join(folder, id), change.fence);
        return () => work(levers);
      }),
  };
  const readerSecret = randomBytes(32).toString('hex');
  const { route, change } = controlRoutesOf(protocol.things, boxes);
  const putSchema = z.strictObject({ ...changeFields, text: z.string() });
  const known = { text: 'a', password: 'swordfish' };
  const routes = [
    route('GET', async () => ok(known), z.object({ text: z.string() })),
    route('GET /password', async () => ok(known)),
    change('POST /put', { op: 'put', body: putSchema }, (box, { text }) => box.put(text)),
    change('POST /touch', { op: 'touch', body: changeSchema }, async () => undefined),
  ];
  const check = async (): Promise<void> => undefined;
  const log = createLog({ service: 'box-host', level: 'silent' });
  const jobs = new Jobs({ folder, kinds, log, ...(now && { now }) });
  await jobs.open();
  const ofJobs = jobRoutesOf(protocol.things, boxes, jobs);
  const server = createControlServer({
    protocol,
    routes: [...routes, ...ofJobs.routes],
    channel: ofJobs.channel,
    keys: tokenKeys(secret),
    readerKeys: tokenKeys(readerSecret),
    log,
    check,
  });
  const { url } = await listen(server, 0, '127.0.0.1');
  const clientWith: BoxHost['clientWith'] = (change) =>
    createControlClient(protocol, { url, secret, deadlineMs: 30_000, ...change });
  const client = clientWith({});
  return {
    url,
    secret,
    readerSecret,
    levers,
    client,
    clientWith,
    send: (method, callPath, { body = '', signed = {} }) => {
      const bound = {
        requestId: randomBytes(12).toString('hex'),
        method,
        path: signed.path ?? callPath,
        body: Buffer.from(signed.body ?? body),
      };
      const authorization = `Bearer ${signInternalToken(tokenKey(secret), protocol.parties, bound)}`;
      return fetch(`${url}${callPath}`, { method, body, headers: { authorization } });
    },
    close: async () => {
      await client.close();
      await jobs.close();
      await closeServer(server);
      if (kept === undefined) await rm(folder, { recursive: true, force: true, maxRetries: 5 });
    },
  };
}
