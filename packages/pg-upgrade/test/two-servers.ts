import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { type PostgresServer, startPostgres } from '@drydock/embedded/postgres';
import { withClient } from '@drydock/test-kit/run-sql';
import { abandonMove } from '../src/abandon';
import { unsubscribe } from '../src/replication';
import { type Move, withDatabase } from '../src/session';

export interface TwoServers {
  old: PostgresServer;
  target: PostgresServer;
  stop(): Promise<void>;
}

/** A 16 and an 18 with no host around them. */
export async function startTwoServers(): Promise<TwoServers> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-pg-upgrade-'));
  await chmod(folder, 0o711);
  const settings = { shared_buffers: '32MB', wal_retrieve_retry_interval: '100ms', max_worker_processes: '12' };
  const start = (major: number) => startPostgres({ folder: path.join(folder, String(major)), major, isEphemeral: true, settings });
  const [old, target] = await Promise.all([start(16), start(18)]);
  const stop = async (): Promise<void> => {
    await Promise.all([old.stop(), target.stop()]);
    await rm(folder, { recursive: true, force: true });
  };
  return { old, target, stop };
}

export interface Customer extends Move {
  /** The customer's own, at the old and the new server. */
  ownUrl: string;
  ownTargetUrl: string;
}

/** A database of an ordinary role on the old server, filled by that role. */
export async function createCustomer({ old, target }: TwoServers, name: string, ...statements: string[]): Promise<Customer> {
  const password = 'the-owner-s-password';
  await withClient(old.adminUrl, async (client) => {
    await client.query(`create role ${name} login createrole password '${password}'`);
    await client.query(`create database ${name} owner ${name} template template0`);
  });
  const own = (server: PostgresServer): string => {
    const url = new URL(withDatabase(server.adminUrl, name));
    url.username = name;
    url.password = password;
    return url.href;
  };
  await withClient(own(old), async (client) => {
    for (const statement of statements) await client.query(statement);
  });
  const base: Move = { oldUrl: old.adminUrl, targetUrl: target.adminUrl, databaseName: name, path: 'logical', fence: '1' };
  return { ...base, ownUrl: own(old), ownTargetUrl: own(target) };
}

/** Replication ends, so that the next test has the slots. */
export async function endMove(move: Customer): Promise<void> {
  await withClient(withDatabase(move.targetUrl, move.databaseName), unsubscribe);
  await abandonMove(move);
}
