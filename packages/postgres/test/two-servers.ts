import { randomBytes } from 'node:crypto';
import { chmod, mkdtemp, rm } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { type PostgresServer, startPostgres } from '../src/server/postgres';
import { withClient } from '../src/testing/run-sql';
import { bringLevel, prepareLevel } from '../src/upgrade/bring-level';
import { abandonMove } from '../src/upgrade/finish';
import { lockOut } from '../src/upgrade/lock-out';
import { unsubscribe } from '../src/upgrade/replication';
import { type Move, withDatabase, withStage } from '../src/upgrade/session';
import { openDatabase, readOpening } from '../src/upgrade/target-database';

export interface TwoServers {
  old: PostgresServer;
  target: PostgresServer;
  stop(): Promise<void>;
}

/**
 * Starts a server of major 16 and a server of major 18, or of other majors, without an agent. `onLog` gets each
 * server's log.
 */
export async function startTwoServers(
  onLog: (major: number, text: string) => void = () => undefined,
  [oldMajor, targetMajor]: readonly [number, number] = [16, 18],
): Promise<TwoServers> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-pg-upgrade-'));
  await chmod(folder, 0o711);
  const settings = { shared_buffers: '32MB', wal_retrieve_retry_interval: '100ms', max_worker_processes: '12' };
  const start = (major: number) =>
    startPostgres({
      folder: path.join(folder, String(major)),
      major,
      isEphemeral: true,
      settings,
      onLog: (text) => {
        onLog(major, text);
        if (process.env['SHOWLOG'] && /ERROR|FATAL/.test(text)) process.stderr.write(`${major} ${text}`);
      },
    });
  const [old, target] = await Promise.all([start(oldMajor), start(targetMajor)]);
  const stop = async (): Promise<void> => {
    await Promise.all([old.stop(), target.stop()]);
    await rm(folder, { recursive: true, force: true });
  };
  return { old, target, stop };
}

export interface Customer extends Move {
  /** The customer's URLs, at the old and the new server. */
  ownUrl: string;
  ownTargetUrl: string;
}

/** Creates a database of an ordinary role on the old server. The role runs the statements in it. */
export async function createCustomer(
  { old, target }: TwoServers,
  name: string,
  ...statements: string[]
): Promise<Customer> {
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
  const secret = randomBytes(32).toString('hex');
  const base: Move = {
    oldUrl: old.adminUrl,
    targetUrl: target.adminUrl,
    databaseName: name,
    path: 'logical',
    secret,
    fence: '1',
  };
  return { ...base, ownUrl: own(old), ownTargetUrl: own(target) };
}

/** Switches to the target as the database agent does, but without a proxy in front of the servers. */
export async function cutOver(move: Move): Promise<void> {
  await withStage(move, async (stage) => {
    const old = await stage.server('old');
    const { opening } = await readOpening(old, move.databaseName, -1);
    const prepared = await prepareLevel(stage);
    await lockOut(old, move.databaseName, await stage.rolesOf('old'));
    await bringLevel(stage, prepared);
    await openDatabase(await stage.server('target'), opening);
  });
}

/** Ends the move, so that its replication slots are free for the next test. */
export async function endMove(move: Customer): Promise<void> {
  await withStage(move, unsubscribe);
  await abandonMove(move);
}
