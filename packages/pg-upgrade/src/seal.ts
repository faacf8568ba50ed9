import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { z } from 'zod';
import { platformRole } from './own-objects';
import { readRows } from './session';
import { UpgradeError } from './upgrade-error';

const pollMs = 2;
const limitMs = 10_000;
const countSchema = z.object({ left: z.coerce.number() });

/** The seal itself is on disk before anything follows from it, and a frozen server takes it too. */
const setup = 'set synchronous_commit = on; set default_transaction_read_only = off';

const endSql = `select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity
  where datname = $1 and backend_type = 'client backend' and usename is distinct from $2`;
/**
 * Sessions of customers, and those that are just starting: one that read the limit before it was lowered is not yet among the activities, but holds its
 * first transaction's lock.
 */
const leftSql = `select count(*) as left from (
  select pid from pg_catalog.pg_stat_activity where datname = $1 and backend_type = 'client backend' and usename is distinct from $2
  union select l.pid from pg_catalog.pg_locks l where l.locktype = 'virtualxid' and not exists
    (select from pg_catalog.pg_stat_activity a where a.pid = l.pid)) x`;

/**
 * Ends every customer's session and lets none in again, on disk, so that a restart of the server changes nothing of it. The platform still enters. When it has
 * resolved nobody writes. Again is harmless. Throws `not_sealed` after 10 s.
 */
export async function sealDatabase(server: pg.ClientBase, databaseName: string): Promise<void> {
  await server.query(setup);
  await server.query(`alter database ${pg.escapeIdentifier(databaseName)} connection limit 0`);
  const untilMs = performance.now() + limitMs;
  for (;;) {
    await server.query(endSql, [databaseName, platformRole]);
    const [found] = await readRows(server, countSchema, leftSql, [databaseName, platformRole]);
    if (found?.left === 0) return;
    if (performance.now() > untilMs) throw new UpgradeError('not_sealed', `${found?.left} sessions cannot be ended`);
    await wait(pollMs);
  }
}

/** Lets customers in again, at most as many as before (-1: as many as the server takes). */
export async function unsealDatabase(server: pg.ClientBase, databaseName: string, connectionLimit: number): Promise<void> {
  await server.query(setup);
  await server.query(`alter database ${pg.escapeIdentifier(databaseName)} connection limit ${Math.trunc(connectionLimit)}`);
}

/** How many customers' sessions the database takes; -1 when only the server limits them. One that is sealed counts as unlimited. */
export async function readConnectionLimit(server: pg.ClientBase, databaseName: string): Promise<number> {
  const sql = 'select datconnlimit as limit from pg_catalog.pg_database where datname = $1';
  const limit = (await readRows(server, z.object({ limit: z.number() }), sql, [databaseName]))[0]?.limit ?? -1;
  return limit > 0 ? limit : -1;
}
