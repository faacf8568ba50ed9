import { setTimeout as wait } from 'node:timers/promises';
import { listTables } from '@drydock/pg-transfer/list-tables';
import pg from 'pg';
import { z } from 'zod';
import { publication, slot, subscription } from './own-objects';
import { restoreIdentities } from './replica-identity';
import { readRows, withDatabase } from './session';
import { UpgradeError } from './upgrade-error';

const pollMs = 50;
/** A subscriber tries again by itself; that many failures in a row are no accident. */
const errorsMax = 20;
const copySchema = z.object({ total: z.coerce.number(), ready: z.coerce.number(), errors: z.coerce.number() });
const copySql = `select count(*) as total, count(*) filter (where r.srsubstate = 'r') as ready,
    (select coalesce(sum(apply_error_count + sync_error_count), 0) from pg_catalog.pg_stat_subscription_stats) as errors
  from pg_catalog.pg_subscription_rel r`;

const isThere = async (client: pg.ClientBase, sql: string): Promise<boolean> => ((await client.query(sql)).rowCount ?? 0) > 0;

/** Of this database: the catalogue of subscriptions is the whole server's. */
const subscriptionSql = `select from pg_catalog.pg_subscription s join pg_catalog.pg_database d on d.oid = s.subdbid
  where s.subname = '${subscription}' and d.datname = pg_catalog.current_database()`;

export async function publish(old: pg.ClientBase): Promise<void> {
  if (await isThere(old, `select from pg_catalog.pg_publication where pubname = '${publication}'`)) return;
  await old.query(`create publication ${publication} for all tables`);
}

function conninfo(url: string): string {
  const { hostname, port, username, password, pathname } = new URL(url);
  const fields = {
    host: hostname,
    port,
    user: username,
    password: decodeURIComponent(password),
    dbname: decodeURIComponent(pathname.slice(1)),
  };
  const quote = (value: string): string => `'${value.replace(/['\\]/g, '\\$&')}'`;
  return Object.entries({ ...fields, sslmode: 'disable', application_name: subscription })
    .map(([key, value]) => `${key}=${quote(value)}`)
    .join(' ');
}

/** Rows flow from now on: a copy of each table first, then every change. One that is there already goes on. */
export async function subscribe(old: pg.ClientBase, target: pg.ClientBase, oldUrl: string, databaseName: string): Promise<void> {
  if (await isThere(target, subscriptionSql)) return;
  await dropSlots(old); // of a subscription whose making was cut
  // Binary values carry type numbers, which differ for the customer's own types.
  const isBinary = (await listTables(old)).every(({ format }) => format === 'binary');
  const connection = pg.escapeLiteral(conninfo(withDatabase(oldUrl, databaseName)));
  await target.query(`create subscription ${subscription} connection ${connection} publication ${publication}
    with (slot_name = '${slot}', binary = ${isBinary}, streaming = parallel)`);
}

/** Resolves when every table has been copied and follows. Throws `replication_failed` when the subscriber cannot go on. */
export async function waitUntilCopied(target: pg.ClientBase, onProgress: (fraction: number) => void): Promise<void> {
  for (;;) {
    const [{ total, ready, errors } = { total: 0, ready: 0, errors: 0 }] = await readRows(target, copySchema, copySql);
    if (total > 0 && ready === total) return;
    if (errors > errorsMax) throw new UpgradeError('replication_failed', `the subscriber has failed ${errors} times`);
    onProgress(ready / Math.max(total, 1));
    await wait(pollMs);
  }
}

/** The target stops following; the slot on the old server is left to {@link dropSlots}. Not there is no error. */
export async function unsubscribe(target: pg.ClientBase): Promise<void> {
  if (!(await isThere(target, subscriptionSql))) return;
  await target.query(`alter subscription ${subscription} disable`);
  // Otherwise dropping it would ask the old server, which may be gone.
  await target.query(`alter subscription ${subscription} set (slot_name = none)`);
  await target.query(`drop subscription ${subscription}`);
}

const slotsSql = `select slot_name, active_pid from pg_catalog.pg_replication_slots
  where database = pg_catalog.current_database() and (slot_name = $1 or slot_name ~ '^pg_[0-9]+_sync_')`;
const slotSchema = z.object({ slot_name: z.string(), active_pid: z.number().nullable() });

/** Slots keep the old server's log for ever, so none may stay behind. Whoever still reads from one is ended. */
export async function dropSlots(old: pg.ClientBase): Promise<void> {
  for (const { slot_name: name, active_pid: pid } of await readRows(old, slotSchema, slotsSql, [slot])) {
    if (pid !== null) await old.query('select pg_catalog.pg_terminate_backend($1, 5000)', [pid]);
    await old.query('select pg_catalog.pg_drop_replication_slot($1)', [name]);
  }
}

/** The old database as it was before {@link publish} and the widening of identities. */
export async function unpublish(old: pg.ClientBase): Promise<void> {
  await dropSlots(old);
  await old.query(`drop publication if exists ${publication}`);
  await restoreIdentities(old);
}
