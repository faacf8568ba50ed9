import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { findFreePort } from './free-port';
import { type ChildExit, type GuardedChild, spawnGuarded } from './guarded-child';
import { initCluster, postgresEnvironment } from './init-cluster';
import { defaultMajor, findPostgresPrograms } from './native-postgres';
import { settlePassword, settlePostgresFolder } from './postgres-folder';
import { clearLeftoverPostgres } from './postgres-leftover';
import type { ProcessProof } from './process-proof';
import { serverAccount } from './unprivileged';

export interface PostgresOptions {
  /** Holds `<major>/` (the data) and `password` (0600). Made when missing. */
  folder: string;
  /** A free one when missing. */
  port?: number;
  major?: number;
  /** A cluster for tests: no fsync, smaller. A power cut loses it. */
  isEphemeral?: boolean;
  /** postgresql.conf settings beyond ours. */
  settings?: Readonly<Record<string, string>>;
  /** Gets what the server writes to its log. */
  onLog?: (text: string) => void;
}

export interface PostgresServer {
  port: number;
  /** Superuser, database `postgres`. */
  adminUrl: string;
  proof: ProcessProof;
  /** Where the data really is; tell the user when `isElsewhere`. */
  dataDir: string;
  isElsewhere: boolean;
  exited: Promise<ChildExit>;
  /** Fast shutdown: open transactions are rolled back, data is checkpointed. */
  stop(): Promise<void>;
}

/** Recovery after kill -9 of a busy cluster has been seen to take seconds, so far longer than that. */
const startTimeoutMs = 60_000;
const stopTimeoutMs = 20_000;

/**
 * Starts Postgres on loopback TCP (no Unix socket), scram-sha-256, `wal_level=logical`; makes its cluster at first. A leftover server of
 * an earlier run on the same data is ended first, after proof that it is ours. Resolves when it answers a query.
 * @throws with the server's last words when it does not start
 */
export async function startPostgres(options: PostgresOptions): Promise<PostgresServer> {
  const major = options.major ?? defaultMajor;
  const programs = findPostgresPrograms(major);
  const folder = settlePostgresFolder(options.folder, major);
  const password = settlePassword(folder.passwordFile);
  if (fs.existsSync(path.join(folder.dataDir, 'PG_VERSION'))) await clearLeftoverPostgres(folder.dataDir);
  else await initCluster(programs.initdb, folder.dataDir, password);
  const port = options.port ?? (await findFreePort());
  const adminUrl = `postgresql://postgres:${password}@127.0.0.1:${port}/postgres`;
  const child = await spawnGuarded(programs.postgres, ['-D', folder.dataDir, '-p', String(port), ...settingsArguments(options)], {
    ...serverAccount(),
    env: postgresEnvironment,
    cwd: '/',
    stdio: ['ignore', 'ignore', 'pipe'],
    signalOnOrphan: 'SIGINT',
  });
  const stop = (): Promise<void> => child.stop('SIGINT', stopTimeoutMs);
  try {
    await waitUntilAnswering(child, adminUrl, options.onLog);
  } catch (error) {
    await stop();
    throw error;
  }
  const { dataDir, isElsewhere } = folder;
  return { port, adminUrl, proof: child.proof, dataDir, isElsewhere, exited: child.exited, stop };
}

function settingsArguments(options: PostgresOptions): string[] {
  const settings: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    unix_socket_directories: '',
    password_encryption: 'scram-sha-256',
    wal_level: 'logical',
    max_connections: '200',
    ...(options.isEphemeral === true ? { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' } : {}),
    ...options.settings,
  };
  return Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`]);
}

async function waitUntilAnswering(child: GuardedChild, adminUrl: string, onLog?: (text: string) => void): Promise<void> {
  let lastWords = '';
  child.process.stderr?.on('data', (chunk: Buffer) => {
    lastWords = (lastWords + chunk.toString()).slice(-4000);
    onLog?.(chunk.toString());
  });
  const until = performance.now() + startTimeoutMs;
  while (!(await answers(adminUrl))) {
    if (child.process.exitCode !== null || child.process.signalCode !== null) throw new Error(`Postgres did not start:\n${lastWords}`);
    if (performance.now() > until) throw new Error(`Postgres did not answer within ${startTimeoutMs / 1000} s:\n${lastWords}`);
    await sleep(25);
  }
}

async function answers(adminUrl: string): Promise<boolean> {
  const client = new pg.Client({ connectionString: adminUrl, connectionTimeoutMillis: 2000 });
  client.on('error', () => undefined);
  try {
    await client.connect();
    await client.query('SELECT 1');
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === '28P01') {
      throw new Error('The data directory has another password than the password file beside it', { cause: error });
    }
    return false;
  } finally {
    await client.end().catch(() => undefined);
  }
}
