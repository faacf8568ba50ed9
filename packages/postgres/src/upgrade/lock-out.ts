import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { z } from 'zod';
import { platformRole } from './copy/own-objects';
import { readRows } from './session';
import { UpgradeError } from './upgrade-error';

const name = pg.escapeIdentifier;
const pollMs = 2;
const limitMs = 10_000;

/** The roles that may connect to the database, without the platform's own; null is PUBLIC. */
const mayConnectSql = `select pg_catalog.jsonb_agg(distinct pg_catalog.jsonb_build_object('grantee', g.rolname)) as grantees
  from pg_catalog.pg_database d cross join lateral pg_catalog.aclexplode(coalesce(d.datacl, pg_catalog.acldefault('d', d.datdba))) a
  left join pg_catalog.pg_roles g on g.oid = a.grantee
  where d.datname = $1 and a.privilege_type = 'CONNECT' and not (g.rolname = any ($2::text[]) and g.rolname is not null)`;
const mayConnectSchema = z.object({ grantees: z.array(z.object({ grantee: z.string().nullable() })).nullable() });

/** In every database of the server: a session elsewhere could let itself in again. */
const endSql = `select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity
  where backend_type = 'client backend' and not (usename = any ($1::name[]))`;
/**
 * Sessions of customers, and those that are just starting: one that read the grants before they were revoked is not yet
 * among the activities, but holds its first transaction's lock.
 */
const leftSql = `select count(*) as left from (
  select pid from pg_catalog.pg_stat_activity where backend_type = 'client backend' and not (usename = any ($1::name[]))
  union select l.pid from pg_catalog.pg_locks l where l.locktype = 'virtualxid' and not exists
    (select from pg_catalog.pg_stat_activity a where a.pid = l.pid)) x`;
const leftSchema = z.object({ left: z.coerce.number() });

/** Postgres' error when somebody else changes the grants of the database at the same moment. */
const changedMeanwhileCode = 'XX000';

/** A revoke that lost against a grant at the same moment is made again by the caller, who looks at the grants anew. */
async function revoke(server: pg.ClientBase, statement: string): Promise<void> {
  try {
    await server.query(statement);
  } catch (error) {
    if (!(error instanceof pg.DatabaseError && error.code === changedMeanwhileCode)) throw error;
  }
}

/**
 * Ends every session of every customer and lets none into the database again, on disk, so that a restart of the server
 * changes nothing of it. An owner who is connected could undo it, so it is done again until nobody is there and it
 * stands. `kept` are our own roles. When it has resolved nobody writes. Again is harmless. Throws `not_sealed` after 10
 * s.
 */
export async function lockOut(server: pg.ClientBase, databaseName: string, kept: readonly string[]): Promise<void> {
  const ours = [platformRole, ...kept];
  // A frozen server takes it too.
  await server.query('set synchronous_commit = on; set default_transaction_read_only = off');
  const untilMs = performance.now() + limitMs;
  for (;;) {
    const [found] = await readRows(server, mayConnectSchema, mayConnectSql, [databaseName, ours]);
    const grantees = (found?.grantees ?? []).map(({ grantee }) => (grantee === null ? 'public' : name(grantee)));
    if (grantees.length > 0)
      await revoke(server, `revoke connect on database ${name(databaseName)} from ${grantees.join(', ')} cascade`);
    await server.query(endSql, [ours]);
    const [sessions] = await readRows(server, leftSchema, leftSql, [ours]);
    if (sessions?.left === 0 && grantees.length === 0) return;
    if (performance.now() > untilMs) throw new UpgradeError('not_sealed', `${sessions?.left} sessions cannot be ended`);
    if (sessions?.left !== 0) await wait(pollMs);
  }
}
