import type pg from 'pg';
import { z } from 'zod';
import { sqlStateOf, TransferError } from '../session/transfer-error';
import type { SequenceEntry, TableEntry } from './dump-format';

/** Selects the customer's relations, without temporary relations and those of extensions and system schemas. */
const ownRelations = `
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and c.relpersistence <> 't'
    and not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_class'::regclass
      and d.objid = c.oid and d.deptype = 'e')`;

/**
 * The query uses joins, because a subquery for each of 50,000 tables takes hours.
 *
 * A table is copied as text if a column contains, at any depth, a composite, an array of a customer's type, or a reg*
 * type. Binary COPY would write oids of the customer's objects, which differ between databases. A type without binary
 * functions is copied as text too.
 */
const tablesSql = `
with recursive tables as (select c.oid, n.nspname as schema, c.relname as name,
  pg_catalog.pg_relation_size(c.oid) as bytes ${ownRelations} and c.relkind = 'r'),
columns as (
  select a.attrelid, a.attnum, a.attname, a.atttypid from pg_catalog.pg_attribute a join tables t on t.oid = a.attrelid
  where a.attnum > 0 and not a.attisdropped and a.attgenerated = ''),
parts as (
  select attrelid, atttypid as typid from columns
  union
  select p.attrelid, x.typid from parts p join pg_catalog.pg_type t on t.oid = p.typid
  cross join lateral (values (t.typbasetype), (case when t.typlen = -1 then t.typelem end),
    ((select r.rngsubtype from pg_catalog.pg_range r where r.rngtypid = t.oid)),
    ((select r.rngsubtype from pg_catalog.pg_range r where pg_catalog.to_jsonb(r) ->> 'rngmultitypid' = t.oid::text)))
      x (typid)
  where x.typid <> 0),
textual as (
  select distinct p.attrelid from parts p join pg_catalog.pg_type t on t.oid = p.typid
  where t.typtype = 'c' or (t.typlen = -1 and t.typelem >= 16384) or t.typsend = 0 or t.typreceive = 0
    or (t.oid < 16384 and t.typname ~ '^_?reg'))
select t.schema, t.name, coalesce(k.names, '[]') as columns,
  case when x.attrelid is null then 'binary' else 'text' end as format
from tables t left join textual x on x.attrelid = t.oid
  left join (select attrelid, pg_catalog.json_agg(attname order by attnum) as names from columns
    group by attrelid) k on k.attrelid = t.oid
order by t.bytes desc, t.schema, t.name`;

const sequencesSql = `select c.oid::bigint as oid, n.nspname as schema, c.relname as name ${ownRelations}
  and c.relkind = 'S' order by 2, 3`;

const tableRowSchema = z.object({
  schema: z.string(),
  name: z.string(),
  columns: z.array(z.string()),
  format: z.enum(['binary', 'text']),
});
const namedSchema = z.object({ oid: z.string(), schema: z.string(), name: z.string() });
const positionSchema = z.object({
  oid: z.literal(true),
  last_value: z.string().regex(/^-?\d{1,19}$/),
  is_called: z.boolean(),
});

/**
 * Lists the tables with rows of their own (partitions, not their parents), the largest first, without generated
 * columns.
 */
export async function listTables(client: pg.ClientBase): Promise<TableEntry[]> {
  return z.array(tableRowSchema).parse((await client.query(tablesSql)).rows);
}

const hashRootsSql = `with recursive up (leaf, oid, height) as (
    select c.oid, i.inhparent, 1 from pg_catalog.pg_class c join pg_catalog.pg_inherits i on i.inhrelid = c.oid
    where c.relispartition and c.relkind = 'r'
    union all select u.leaf, i.inhparent, u.height + 1 from up u join pg_catalog.pg_class c on c.oid = u.oid
    and c.relispartition
      join pg_catalog.pg_inherits i on i.inhrelid = u.oid)
  select distinct on (u.leaf) ln.nspname as schema, l.relname as name, rn.nspname as root_schema, r.relname as root_name
  from up u join pg_catalog.pg_partitioned_table p on p.partrelid = u.oid and p.partstrat = 'h'
    join pg_catalog.pg_class l on l.oid = u.leaf join pg_catalog.pg_namespace ln on ln.oid = l.relnamespace
    join pg_catalog.pg_class r on r.oid = u.oid join pg_catalog.pg_namespace rn on rn.oid = r.relnamespace
  order by u.leaf, u.height desc`;
const hashRootSchema = z.object({
  schema: z.string(),
  name: z.string(),
  root_schema: z.string(),
  root_name: z.string(),
});

/**
 * Returns, for each leaf below a hash partitioning, the topmost hash-partitioned table above it. Both names are
 * qualified. The hash of an enum's value depends on the value's oid, which differs between databases. So a restored row
 * may belong to another partition, but always to a partition of that topmost table.
 */
export async function hashRoots(client: pg.ClientBase): Promise<ReadonlyMap<string, string>> {
  const rows = z.array(hashRootSchema).parse((await client.query(hashRootsSql)).rows);
  return new Map(rows.map((row) => [qualify(row), qualify({ schema: row.root_schema, name: row.root_name })]));
}

const lockableSql = `select c.oid::text as oid, n.nspname as schema, c.relname as name ${ownRelations}
  and c.relkind in ('r', 'p') order by c.oid`;
/**
 * Finds a listed table whose name now belongs to another table. Tables are locked by name, so their oids are checked
 * after the lock. to_regclass reads the present state and not the snapshot.
 */
const replacedSql = `select u.name from rows from (pg_catalog.unnest($1::text[]),
    pg_catalog.unnest($2::oid[])) u (name, oid)
  where pg_catalog.to_regclass(u.name)::oid is distinct from u.oid limit 1`;
const tablesAtOnce = 500;
const outOfMemory = '53200';
const lockRoomSql = `select pg_catalog.current_setting('max_locks_per_transaction')::int
  * (pg_catalog.current_setting('max_connections')::int + pg_catalog.current_setting('max_prepared_transactions')::int)
    as room`;
const roomSchema = z.tuple([z.object({ room: z.int() })]);

/**
 * Locks tables and parents of partitions against ALTER and DROP. Reading and writing continue. Throws `dump_failed` if
 * a table was replaced after the snapshot. Throws a permanent `dump_failed` if the server has too few locks for so many
 * tables. Throws every other error of Postgres as it is.
 */
export async function lockTables(client: pg.ClientBase): Promise<void> {
  const tables = z.array(namedSchema).parse((await client.query(lockableSql)).rows);
  const [{ room }] = roomSchema.parse((await client.query(lockRoomSql)).rows);
  for (let from = 0; from < tables.length; from += tablesAtOnce) {
    const some = tables.slice(from, from + tablesAtOnce);
    const names = some.map(qualify);
    await client.query(`lock table only ${names.join(', only ')} in access share mode`).catch((error: unknown) => {
      // If the tables need less than half of the server's locks, the other locks belong to other sessions, and another
      // attempt may succeed.
      if (sqlStateOf(error) !== outOfMemory || tables.length < room / 2) throw error;
      throw tooManyTables(tables.length, room, error);
    });
    const { rows } = await client.query(replacedSql, [names, some.map(({ oid }) => oid)]);
    if (rows.length > 0) throw new TransferError('dump_failed', `${rows[0].name} was replaced after it was listed`);
  }
}

function tooManyTables(tables: number, room: number, cause: unknown): TransferError {
  const message =
    `the database has ${tables} tables, ` + `and its server can lock ${room} at once (max_locks_per_transaction)`;
  const told = new Error(message, { cause });
  return new TransferError('dump_failed', message, { cause: told, object: `${tables} tables`, isPermanent: true });
}

/** Returns the quoted `"schema"."name"`. */
export const qualify = (entry: { schema: string; name: string }): string =>
  [entry.schema, entry.name].map(quoteName).join('.');

export const quoteName = (name: string): string => `"${name.replaceAll('"', '""')}"`;

/**
 * Returns the position of each sequence. It may be newer than the snapshot's rows, but never older. LOCK TABLE does not
 * accept a sequence, so each result is checked against the oid that was listed. No column is cast, because a table that
 * has replaced a sequence could bring a cast of the customer. Throws `dump_failed` for a replaced sequence.
 */
export async function listSequences(client: pg.ClientBase): Promise<SequenceEntry[]> {
  const entries: SequenceEntry[] = [];
  for (const { oid, schema, name } of z.array(namedSchema).parse((await client.query(sequencesSql)).rows)) {
    const sequence = qualify({ schema, name });
    const { rows } = await client.query(
      `select s.tableoid = $1::oid as oid, s.last_value, s.is_called from ${sequence} as s`,
      [oid],
    );
    const position = positionSchema.safeParse(rows[0]);
    if (!position.success)
      throw new TransferError('dump_failed', `${sequence} is not the sequence that was listed`, {
        object: `sequence ${sequence}`,
      });
    entries.push({ schema, name, last_value: position.data.last_value, is_called: position.data.is_called });
  }
  return entries;
}
