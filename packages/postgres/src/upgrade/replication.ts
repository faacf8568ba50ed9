import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { z } from 'zod';
import { copyIn, copyOut } from '../dump/copy-table';
import { qualify } from '../dump/list-tables';
import { sessionStartupOptions } from '../session/session';
import { TransferError } from '../session/transfer-error';
import { loginUrl } from '../session/transfer-roles';
import { customerTables, restoreIdentities } from './copy/customer-tables';
import { readRows, type Stage, UpgradeError } from './session';

const pollMs = 50;
/**
 * A subscriber repeats a failed attempt by itself. After more failures than this, the stage looks for refused rows and
 * ends.
 */
const errorsMax = 20;
/** The most tables in a statement. */
const tablesAtOnce = 500;
const copySchema = z.object({ total: z.coerce.number(), ready: z.coerce.number(), errors: z.coerce.number() });
const copySql = `select count(*) as total, count(*) filter (where r.srsubstate = 'r') as ready,
    (select coalesce(sum(apply_error_count + sync_error_count), 0) from pg_catalog.pg_stat_subscription_stats) as errors
  from pg_catalog.pg_subscription_rel r`;

const isThere = async (client: pg.ClientBase, sql: string, values: unknown[]): Promise<boolean> =>
  ((await client.query(sql, values)).rowCount ?? 0) > 0;

/**
 * Creates the move's schema on the old server, for the marker and the recorded replica identities. Plain CREATE is
 * used, which fails if somebody has created an object of this name before.
 */
export async function ensurePublisherSchema(stage: Stage): Promise<void> {
  const { schema } = stage.own;
  const publisher = await stage.publisher();
  if (await isThere(publisher, 'select from pg_catalog.pg_namespace where nspname = $1', [schema])) return;
  await publisher.query('begin');
  await publisher.query(`create schema ${schema}`);
  await publisher.query(`create table ${schema}.marker (id text primary key)`);
  await publisher.query(
    `create table ${schema}.replica_identity (relation oid primary key, identity "char" not null, index_name text)`,
  );
  await publisher.query('commit');
}

/**
 * Publishes every table with logged rows by name, because only a superuser may use FOR ALL TABLES. DDL is refused
 * during an upgrade, so no table is missed.
 */
export async function publish(stage: Stage): Promise<void> {
  const { publication, schema } = stage.own;
  const publisher = await stage.publisher();
  if (await isThere(publisher, 'select from pg_catalog.pg_publication where pubname = $1', [publication])) return;
  const tables = (await customerTables(await stage.reader('old'), stage.own))
    .filter(({ isLogged }) => isLogged)
    .map(qualify);
  await publisher.query('begin');
  await publisher.query(`create publication ${publication} for table only ${schema}.marker`);
  for (let from = 0; from < tables.length; from += tablesAtOnce) {
    const some = tables.slice(from, from + tablesAtOnce).map((table) => `only ${table}`);
    await publisher.query(`alter publication ${publication} add table ${some.join(', ')}`);
  }
  await publisher.query('commit');
}

async function conninfo(stage: Stage): Promise<string> {
  const url = loginUrl(stage.move.oldUrl, stage.own.replicator, stage.move.databaseName);
  const { hostname, port, username, password } = new URL(url);
  const versionSql = "select pg_catalog.current_setting('server_version_num')::int < 170000 as is_before_17";
  const [server] = await readRows(await stage.server('old'), z.object({ is_before_17: z.boolean() }), versionSql);
  const fields = {
    host: hostname,
    port,
    user: username,
    password,
    dbname: stage.move.databaseName,
    options: sessionStartupOptions(url, { purpose: 'read' }, server?.is_before_17 === true),
    sslmode: 'disable',
    application_name: stage.own.subscription,
  };
  const quote = (value: string): string => `'${value.replace(/['\\]/g, '\\$&')}'`;
  return Object.entries(fields)
    .map(([key, value]) => `${key}=${quote(value)}`)
    .join(' ');
}

const subscriptionSql = `select from pg_catalog.pg_subscription s join pg_catalog.pg_database d on d.oid = s.subdbid
  where s.subname = $1 and d.datname = $2`;
const isSubscribed = (client: pg.ClientBase, stage: Stage): Promise<boolean> =>
  isThere(client, subscriptionSql, [stage.own.subscription, stage.move.databaseName]);

/**
 * Starts replication: a copy of each table, and then all changes. An existing subscription goes on. A subscription
 * whose owner is no superuser must contain a password. The password is a parameter that only the server inserts, so
 * that no statement contains it.
 */
export async function subscribe(stage: Stage): Promise<void> {
  const { subscription, publication, slot } = stage.own;
  const keeper = await stage.keeper();
  if (!(await isSubscribed(keeper, stage))) {
    await dropSlots(stage); // An interrupted creation may have left slots.
    await (await stage.replicator()).query("select pg_catalog.pg_create_logical_replication_slot($1, 'pgoutput')", [
      slot,
    ]);
    // Some binary values contain oids, and the oids of the customer's own types differ between the servers. A
    // subscription has one format for all tables.
    const isBinary = (await customerTables(await stage.reader('old'), stage.own)).every(
      ({ format }) => format === 'binary',
    );
    await keeper.query('begin');
    await keeper.query("select pg_catalog.set_config('drydock.connection', $1, true)", [await conninfo(stage)]);
    await keeper.query(`do $$ begin
      execute pg_catalog.format('create subscription ${subscription} connection %L publication ${publication}
        with (connect = false, slot_name = ''${slot}'', binary = ${isBinary}, streaming = parallel)',
        pg_catalog.current_setting('drydock.connection'));
    exception when others then
      raise exception using errcode = sqlstate, message = 'the subscription was refused';
    end $$`);
    await keeper.query('commit');
  }
  await keeper.query(`alter subscription ${subscription} enable`);
  await keeper.query(`alter subscription ${subscription} refresh publication`);
}

const stuckSchema = z.object({ schema: z.string(), name: z.string() });
/** Selects tables that are not copied yet, those in progress first. A table that failed is among them. */
const stuckSql = `select n.nspname as schema, c.relname as name from pg_catalog.pg_subscription_rel r
  join pg_catalog.pg_class c on c.oid = r.srrelid join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where r.srsubstate in ('i', 'd') order by r.srsubstate, c.oid limit 20`;

/**
 * Finds the table that the subscriber cannot copy. Each candidate is copied in a transaction that is rolled back,
 * because the subscriber reports the table and the reason only in the server's log. The next call of {@link subscribe}
 * enables the subscription again. Throws `copy_failed` with the table if Postgres refuses its rows permanently.
 */
async function findRefusedTable(stage: Stage): Promise<void> {
  const keeper = await stage.keeper();
  await keeper.query(`alter subscription ${stage.own.subscription} disable`);
  const stuck = new Set((await readRows(keeper, stuckSchema, stuckSql)).map(qualify));
  const from = await stage.reader('old');
  for (const table of (await customerTables(from, stage.own)).filter((candidate) => stuck.has(qualify(candidate)))) {
    const into = await stage.rowsLoader(table.owner);
    await into.query('begin');
    try {
      const content = copyOut(from, table, () => undefined);
      await copyIn(into, table, { path: qualify(table), content }, { onBytes: () => undefined });
    } catch (error) {
      if (error instanceof TransferError && error.isPermanent) throw error;
    } finally {
      await into.query('rollback').catch(() => undefined);
    }
  }
}

/**
 * Resolves when all tables are copied and replicate their changes. Throws `replication_failed`, after which another
 * attempt may succeed, and TransferError `copy_failed` if Postgres refuses rows permanently.
 */
export async function waitUntilCopied(stage: Stage, onProgress: (fraction: number) => void): Promise<void> {
  const keeper = await stage.keeper();
  for (;;) {
    const [{ total, ready, errors } = { total: 0, ready: 0, errors: 0 }] = await readRows(keeper, copySchema, copySql);
    if (total > 0 && ready === total) return;
    if (errors > errorsMax) {
      await findRefusedTable(stage);
      throw new UpgradeError('replication_failed', `the subscriber has failed ${errors} times`);
    }
    onProgress(ready / Math.max(total, 1));
    await wait(pollMs);
  }
}

/**
 * Ends the replication on the target, if there is a subscription. {@link dropSlots} removes the slot on the old server.
 */
export async function unsubscribe(stage: Stage): Promise<void> {
  if (!(await isSubscribed(await stage.server('target'), stage))) return;
  const { subscription } = stage.own;
  const keeper = await stage.keeper();
  await keeper.query(`alter subscription ${subscription} disable`);
  // The slot is detached first, because dropping the subscription would otherwise need the old server.
  await keeper.query(`alter subscription ${subscription} set (slot_name = none)`);
  await keeper.query(`drop subscription ${subscription}`);
}

const slotsSql = `select slot_name, active_pid from pg_catalog.pg_replication_slots
  where database = $2 and (slot_name = $1 or slot_name ~ '^pg_[0-9]+_sync_')`;
const slotSchema = z.object({ slot_name: z.string(), active_pid: z.number().nullable() });

/**
 * Drops the move's slots and ends the sessions that read them. A remaining slot would make the old server keep its log
 * for ever.
 */
export async function dropSlots(stage: Stage): Promise<void> {
  const server = await stage.server('old');
  for (const { slot_name: name, active_pid: pid } of await readRows(server, slotSchema, slotsSql, [
    stage.own.slot,
    stage.move.databaseName,
  ])) {
    if (pid !== null) await server.query('select pg_catalog.pg_terminate_backend($1, 5000)', [pid]);
    await server.query('select pg_catalog.pg_drop_replication_slot($1)', [name]);
  }
}

/** Reverses {@link publish} and `widenIdentities`. The move's roles on the old server must exist. */
export async function unpublish(stage: Stage): Promise<void> {
  await dropSlots(stage);
  const { publication, schema } = stage.own;
  const publisher = await stage.publisher();
  await publisher.query(`drop publication if exists ${publication}`);
  if (!(await isThere(publisher, 'select from pg_catalog.pg_namespace where nspname = $1', [schema]))) return;
  await restoreIdentities(stage);
  await publisher.query(`drop schema ${schema} cascade`);
}

const markerPollMs = 2;

/**
 * Writes a row on the old server and waits until it arrives on the target, with everything that was committed before.
 * Positions reported by servers are not used, because they lag by seconds. Returns the milliseconds that it took.
 * Throws `not_caught_up` after `limitMs`.
 */
export async function sendMarker(stage: Stage, limitMs: number): Promise<number> {
  const marker = `${pg.escapeIdentifier(stage.own.schema)}.marker`;
  const [publisher, keeper] = [await stage.publisher(), await stage.keeper()];
  const id = randomUUID();
  const startedMs = performance.now();
  await publisher.query(`insert into ${marker} (id) values ($1)`, [id]);
  for (;;) {
    const { rowCount } = await keeper.query(`select from ${marker} where id = $1`, [id]);
    const tookMs = performance.now() - startedMs;
    if (rowCount === 1) return tookMs;
    if (tookMs > limitMs) throw new UpgradeError('not_caught_up', `the target is more than ${limitMs} ms behind`);
    await wait(markerPollMs);
  }
}

const horizonSchema = z.object({ horizon: z.string() });

/** Reads the horizon that {@link writeHorizon} stored last, or null before the first copy of large objects. */
export async function readHorizon(stage: Stage): Promise<string | null> {
  return (
    (await readRows(await stage.keeper(), horizonSchema, `select horizon from ${stage.own.schema}.horizon`))[0]
      ?.horizon ?? null
  );
}

export async function writeHorizon(stage: Stage, horizon: string): Promise<void> {
  const { schema } = stage.own;
  const keeper = await stage.keeper();
  await keeper.query('begin');
  await keeper.query(`delete from ${schema}.horizon`);
  await keeper.query(`insert into ${schema}.horizon values ($1)`, [horizon]);
  await keeper.query('commit');
}
