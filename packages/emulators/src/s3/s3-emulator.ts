import { once } from 'node:events';
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import type { IncomingMessage, Server, ServerResponse } from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { z } from 'zod';
import { adminRoutes } from '../protocol/admin-routes';
import { createCallLog, jsonReply, matchRoute, Refusal, type Reply, type Route, sendReply } from '../protocol/call';
import { clockAnchorSchema, openClock, startOfClock } from '../protocol/clock';
import { createFaultOrders, type FaultOrders } from '../protocol/faults';
import { type LedgerFile, openLedger, openStateFile } from '../protocol/state-file';
import { isSame } from '../protocol/tokens';
import type { S3Account } from './authenticate';
import { openBuckets, openUploads } from './bucket-store';
import type { LockAnswer } from './object-lock';
import type { S3World } from './s3-call';
import { createS3Server } from './serve-s3';

interface AdminRequest {
  request: IncomingMessage;
  response: ServerResponse;
  routes: readonly Route[];
  token: string;
}

function answerAdmin(admin: AdminRequest): void {
  void replyTo(admin).then(
    (reply) => sendReply(admin.response, reply),
    () => admin.response.destroy(),
  );
}

async function replyTo({ request, routes, token }: AdminRequest): Promise<Reply> {
  const pieces: Buffer[] = [];
  for await (const piece of request) if (Buffer.isBuffer(piece)) pieces.push(piece);
  if (!isSame(request.headers.authorization ?? '', `Bearer ${token}`))
    return jsonReply(401, { error: 'admin token required' });
  const url = new URL(`http://s3${request.url ?? '/'}`);
  const call = {
    method: request.method ?? 'GET',
    path: url.pathname,
    query: url.searchParams,
    headers: {},
    body: Buffer.concat(pieces),
  };
  const match = matchRoute(routes, call);
  if (match.kind !== 'found') return jsonReply(match.kind === 'unknown' ? 404 : 405, { error: 'no such route' });
  try {
    return await match.handle();
  } catch (error) {
    if (error instanceof Refusal) return error.reply;
    throw error;
  }
}

interface S3Options {
  stateDir: string;
  accounts: readonly S3Account[];
  /** Buckets that are created if they are missing. */
  buckets: ReadonlyArray<{ name: string; hasObjectLock: boolean }>;
  adminToken: string;
  region: string;
  lockAnswer: LockAnswer;
  /** The speed of a new emulator's clock relative to real time. */
  clockScale: number;
}

/** The emulator, and the parts that a test in the same process can read and control. */
interface S3Emulator {
  server: Server;
  world: S3World;
  faults: FaultOrders;
  ledger: LedgerFile;
}

const stateSchema = z.strictObject({ clock: clockAnchorSchema });

/**
 * Emulates the part of S3 that common clients use. The objects are in `stateDir`. The returned server does not listen
 * yet.
 */
export function createS3Emulator(options: S3Options): S3Emulator {
  const { stateDir, accounts, region, lockAnswer } = options;
  mkdirSync(stateDir, { recursive: true, mode: 0o700 });
  const file = openStateFile(stateDir, stateSchema);
  const clock = openClock(file.read(() => ({ clock: startOfClock(options.clockScale) })).clock);
  const save = (): void => file.write({ clock: clock.anchor });
  save();
  const ledger = openLedger(stateDir, null);
  const buckets = openBuckets(stateDir);
  const createdAt = new Date(clock.now()).toISOString();
  for (const { name, hasObjectLock } of options.buckets)
    if (!buckets.names().includes(name))
      buckets.create({ name, createdAt, hasVersions: hasObjectLock, hasObjectLock, defaultRetention: null });
  const world: S3World = {
    clock,
    region,
    buckets,
    uploadsOf: (bucket) => openUploads(buckets.folderOf(bucket)),
    lockAnswer,
    record: recordIn(ledger, () => new Date(clock.now()).toISOString()),
  };
  const [faults, calls] = [createFaultOrders(), createCallLog()];
  const routes = adminRoutes({ clock, faults, calls, ledger, save });
  const admin = (request: IncomingMessage, response: ServerResponse): void =>
    answerAdmin({ request, response, routes, token: options.adminToken });
  return { server: createS3Server({ world, accounts, faults, calls, admin }), world, faults, ledger };
}

function recordIn(ledger: LedgerFile, now: () => string): S3World['record'] {
  let seq = ledger.read().at(-1)?.seq ?? 0;
  return ({ account }, { op, bucket, key, id, detail = '' }) => {
    seq += 1;
    ledger.append({
      seq,
      time: now(),
      project: account.accessKeyId,
      resource: `${bucket}/${key}`,
      op,
      action_id: id,
      detail,
      fence: '0',
      workflow_id: null,
      outcome: 'accepted',
    });
  };
}

export interface RunningS3 extends S3Emulator {
  /** The URL in the form `http://127.0.0.1:<port>`. */
  endpoint: string;
  /**
   * Returns the first file of an object's newest version, for tests that corrupt the object. Only a multipart object
   * has further files.
   */
  fileOf(bucket: string, key: string): string;
  close(): Promise<void>;
}

/**
 * Starts the emulator in this process. `close` removes the emulator's folder, unless the caller provided the folder.
 */
export async function startS3(
  options: Omit<S3Options, 'stateDir' | 'adminToken' | 'region' | 'clockScale' | 'lockAnswer'> & Partial<S3Options>,
): Promise<RunningS3> {
  const stateDir = options.stateDir ?? mkdtempSync(path.join(tmpdir(), 'drydock-s3-'));
  const emulator = createS3Emulator({
    adminToken: 'admin',
    region: 'us-east-1',
    clockScale: 1,
    lockAnswer: 'access_denied',
    ...options,
    stateDir,
  });
  emulator.server.listen(0, '127.0.0.1');
  await once(emulator.server, 'listening');
  const address = emulator.server.address();
  if (address === null || typeof address === 'string') throw new Error('not listening on a port');
  return {
    ...emulator,
    endpoint: `http://127.0.0.1:${address.port}`,
    fileOf: (bucket, key) => {
      const store = emulator.world.buckets.get(bucket);
      const [piece] = store.versionsOf(key)[0]?.pieces ?? [];
      if (piece === undefined) throw new Error(`nothing was written as ${key}`);
      return store.fileOf(piece);
    },
    close: async () => {
      emulator.server.close();
      emulator.server.closeAllConnections();
      await once(emulator.server, 'close');
      if (options.stateDir === undefined) rmSync(stateDir, { recursive: true, force: true });
    },
  };
}
