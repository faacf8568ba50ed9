import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { z } from 'zod';
import { platformRole } from './copy/own-objects';
import { readRows, UpgradeError } from './session';

const name = pg.escapeIdentifier;
const pollMs = 2;
const limitMs = 10_000;
/**
 * The longest wait for the lock of {@link closeDatabase}. A session that holds it longer is ended before the next
 * attempt.
 */
const lockMs = 200;

/** Selects the roles with CONNECT, except the platform's. Null stands for PUBLIC. */
const mayConnectSql = `select pg_catalog.jsonb_agg(distinct pg_catalog.jsonb_build_object('grantee', g.rolname)) as
    grantees
  from pg_catalog.pg_database d
  cross join lateral pg_catalog.aclexplode(coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba))) a
  left join pg_catalog.pg_roles g on g.oid = a.grantee
  where d.datname = $1 and a.privilege_type = 'CONNECT'
  and not (g.rolname = any ($2::text[]) and g.rolname is not null)`;
const mayConnectSchema = z.object({ grantees: z.array(z.object({ grantee: z.string().nullable() })).nullable() });

/** Ends customers' sessions in all databases, because a customer in another database could grant CONNECT again. */
const endSql = `select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity
  where backend_type = 'client backend' and not (usename = any ($1::name[]))`;
/**
 * Counts customers' sessions, and sessions that are just starting. A starting session may have read the grants already.
 * It already holds the lock of its first transaction. pg_stat_activity does not list it yet before Postgres 18, and
 * lists it without a role from 18 on.
 */
const leftSql = `select count(*) as left from (
  select pid from pg_catalog.pg_stat_activity where backend_type = 'client backend' and not (usename = any ($1::name[]))
  union select l.pid from pg_catalog.pg_locks l where l.locktype = 'virtualxid' and not exists
    (select from pg_catalog.pg_stat_activity a
      where a.pid = l.pid and (a.usename is not null or a.backend_type <> 'client backend'))) x`;
const leftSchema = z.object({ left: z.coerce.number() });

const lockTimeoutCode = '55P03';

/**
 * Ends all sessions of customers and revokes their access to the database. The revocation is committed to disk, so it
 * survives a restart. A connected owner could grant access again, so ending and revoking are repeated until there is no
 * session and no grant. Roles of the platform in `kept` keep their access. Throws `not_sealed` after 10 s.
 */
export async function lockOut(server: pg.ClientBase, databaseName: string, kept: readonly string[]): Promise<void> {
  const ours = [platformRole, ...kept];
  // A frozen server is read-only by default, so the session turns that off.
  await server.query('set synchronous_commit = on; set default_transaction_read_only = off');
  const untilMs = performance.now() + limitMs;
  for (;;) {
    await server.query(endSql, [ours]);
    const left = await closeDatabase(server, databaseName, ours);
    if (left === 0) return;
    if (performance.now() > untilMs)
      throw new UpgradeError('not_sealed', `${left ?? 'unknown'} sessions cannot be ended`);
    await wait(pollMs);
  }
}

/**
 * Revokes all grants of CONNECT under a lock that prevents new grants, ends all sessions, and returns the number of
 * remaining sessions. If the number is 0, no customer can open a session any more. Returns null if an uncommitted grant
 * held the lock.
 */
async function closeDatabase(server: pg.ClientBase, databaseName: string, ours: string[]): Promise<number | null> {
  await server.query(`begin; set local lock_timeout = '${lockMs}ms'`);
  try {
    await server.query('lock table pg_catalog.pg_database in share mode');
    const [found] = await readRows(server, mayConnectSchema, mayConnectSql, [databaseName, ours]);
    const grantees = (found?.grantees ?? []).map(({ grantee }) => (grantee === null ? 'public' : name(grantee)));
    if (grantees.length > 0)
      await server.query(`revoke connect on database ${name(databaseName)} from ${grantees.join(', ')} cascade`);
    await server.query(endSql, [ours]);
    // Within a transaction, pg_stat_activity shows the same rows until its snapshot is cleared.
    await server.query('select pg_catalog.pg_stat_clear_snapshot()');
    const [sessions] = await readRows(server, leftSchema, leftSql, [ours]);
    await server.query('commit');
    return sessions?.left ?? null;
  } catch (error) {
    await server.query('rollback');
    if (error instanceof pg.DatabaseError && error.code === lockTimeoutCode) return null;
    throw error;
  }
}
