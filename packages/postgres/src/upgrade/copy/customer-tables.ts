import { setTimeout as wait } from 'node:timers/promises';
import pg from 'pg';
import { z } from 'zod';
import type { TableEntry } from '../../dump/dump-format';
import { hashRoots, listTables, qualify } from '../../dump/list-tables';
import { sqlStateOf } from '../../session/transfer-error';
import { readRows, type Stage, UpgradeError } from '../session';
import type { OwnObjects } from './own-objects';

export interface CustomerTable extends TableEntry {
  owner: string;
  /** The topmost hash-partitioned table above this one; see {@link hashRoots}. `name` is qualified. */
  root?: { name: string; owner: string };
  /** False for an UNLOGGED table. */
  isLogged: boolean;
}

const ownerSchema = z.object({ schema: z.string(), name: z.string(), owner: z.string(), is_logged: z.boolean() });
const ownersSql = `select n.nspname as schema, c.relname as name, pg_catalog.pg_get_userbyid(c.relowner) as owner,
    c.relpersistence <> 'u' as is_logged
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'p')
  and c.relpersistence <> 't'`;

/** Returns the customer's tables with rows of their own, the largest first. */
export async function customerTables(client: pg.ClientBase, { schema: own }: OwnObjects): Promise<CustomerTable[]> {
  const known = new Map((await readRows(client, ownerSchema, ownersSql)).map((row) => [qualify(row), row]));
  const roots = await hashRoots(client);
  return (await listTables(client)).flatMap((table) => {
    const row = known.get(qualify(table));
    if (table.schema === own || row === undefined) return [];
    const name = roots.get(qualify(table));
    const root = name === undefined ? {} : { root: { name, owner: known.get(name)?.owner ?? row.owner } };
    return [{ ...table, owner: row.owner, isLogged: row.is_logged, ...root }];
  });
}

const changedSchema = z.object({
  oid: z.number(),
  table: z.string(),
  identity: z.string(),
  index_name: z.string().nullable(),
});

/**
 * SQL that tells whether the index `i` is a key that a subscriber can use. Replication does not carry generated
 * columns, so a key must have none. The first `indnkeyatts` columns of an index are the key, and the others are only
 * included.
 */
export const isUsableKeySql = `i.indisvalid and not exists (
  select from pg_catalog.generate_series(0, i.indnkeyatts - 1) k
  join pg_catalog.pg_attribute a on a.attrelid = i.indrelid and a.attnum = i.indkey[k] where a.attgenerated <> '')`;

/**
 * Selects tables whose changed rows a subscriber could not identify, because no usable key exists or is chosen. `$1`
 * lists excluded schemas. `$2` lists the replica identities that need a primary key: `d`, and `f` to select tables that
 * the customer has given FULL as well.
 */
export const withoutIdentitySql = `select c.oid, c.oid::regclass::text as table, c.relreplident as identity,
    (select x.relname from pg_catalog.pg_index i join pg_catalog.pg_class x on x.oid = i.indexrelid
      where i.indrelid = c.oid and i.indisreplident) as index_name
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'r' and c.relpersistence = 'p' and n.nspname !~ '^pg_' and n.nspname <> 'information_schema'
  and n.nspname <> all ($1)
    and (c.relreplident = 'n'
      or c.relreplident = any ($2::"char"[]) and not exists (select from pg_catalog.pg_index i where i.indrelid = c.oid
        and i.indisprimary and i.indimmediate and ${isUsableKeySql})
      or c.relreplident = 'i' and not exists (select from pg_catalog.pg_index i where i.indrelid = c.oid
        and i.indisreplident and ${isUsableKeySql}))`;

const identityOf: Record<string, string> = { d: 'default', n: 'nothing', f: 'full' };

/** The longest wait for a table's lock, in ms. Meanwhile every later session that needs the table waits as well. */
const lockMs = 200;
/** The pause between two attempts, in ms. */
const pauseMs = 800;
/** The time after which another session's lock ends the stage, in ms. */
const limitMs = 60_000;
const lockTimeoutCode = '55P03';

/**
 * Changes a table's replica identity, and runs another statement in the same transaction. Throws `busy` if a
 * transaction has used the table for a minute.
 */
async function setIdentity(
  publisher: pg.ClientBase,
  { table, identity }: { table: string; identity: string },
  noted: { text: string; values: unknown[] },
): Promise<void> {
  const untilMs = performance.now() + limitMs;
  for (;;) {
    await publisher.query(`begin; set local lock_timeout = '${lockMs}ms'`);
    try {
      await publisher.query(`alter table only ${table} replica identity ${identity}`);
      await publisher.query(noted);
      await publisher.query('commit');
      return;
    } catch (error) {
      await publisher.query('rollback').catch(() => undefined);
      if (sqlStateOf(error) !== lockTimeoutCode) throw error;
      if (performance.now() > untilMs)
        throw new UpgradeError('busy', `a transaction has used ${table} for over ${limitMs / 1000} s`, {
          object: `TABLE ${table}`,
        });
    }
    await wait(pauseMs);
  }
}

/**
 * Sets REPLICA IDENTITY FULL on tables without a usable key, so that each change carries the whole old row. The tables'
 * previous identities are recorded. Throws `busy`.
 */
export async function widenIdentities(stage: Stage): Promise<void> {
  const { schema } = stage.own;
  const publisher = await stage.publisher();
  const keyless = await readRows(await stage.reader('old'), changedSchema, withoutIdentitySql, [[schema], ['d']]);
  for (const { oid, table, identity, index_name: indexName } of keyless) {
    const text = `insert into ${schema}.replica_identity (relation, identity, index_name) values ($1, $2, $3)
      on conflict do nothing`;
    await setIdentity(publisher, { table, identity: 'full' }, { text, values: [oid, identity, indexName] });
  }
}

/**
 * Reverses {@link widenIdentities}. The table `replica_identity` must exist. A table whose index has gone since gets
 * its default identity. Throws `busy`.
 */
export async function restoreIdentities(stage: Stage): Promise<void> {
  const { schema } = stage.own;
  const publisher = await stage.publisher();
  const sql = `select r.relation as oid, c.oid::regclass::text as table, r.identity,
      (select x.relname from pg_catalog.pg_index i join pg_catalog.pg_class x on x.oid = i.indexrelid
        where i.indrelid = r.relation and x.relname = r.index_name) as index_name
    from ${schema}.replica_identity r
    join pg_catalog.pg_class c on c.oid = r.relation`;
  for (const { oid, table, identity, index_name: indexName } of await readRows(publisher, changedSchema, sql)) {
    const wanted = indexName === null ? identityOf[identity] : `using index ${pg.escapeIdentifier(indexName)}`;
    const text = `delete from ${schema}.replica_identity where relation = $1`;
    await setIdentity(publisher, { table, identity: wanted ?? 'default' }, { text, values: [oid] });
  }
}
