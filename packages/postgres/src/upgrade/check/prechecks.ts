import type pg from 'pg';
import { z } from 'zod';
import { openSession } from '../../session/session';
import { dropTransferRole, loginUrl, makeReader, sweepTransferRoles } from '../../session/transfer-roles';
import { isUsableKeySql, withoutIdentitySql } from '../copy/customer-tables';
import { isOwnRoleSql } from '../copy/own-objects';
import { readRows } from '../session';
import { type Facts, reportUpgrade, type UpgradeReport } from './prechecks.rules';

const own = "n.nspname !~ '^pg_' and n.nspname <> 'information_schema'";

/** Reads facts about the server as the superuser. `$1` is the customer's database. */
const serverSql = `select pg_catalog.current_setting('server_version_num')::int / 10000 as from_major,
  pg_catalog.pg_database_size($1::name) as size_bytes,
  (select count(*) from pg_catalog.pg_prepared_xacts where database = $1) as prepared_transactions,
  (select count(*) from pg_catalog.pg_replication_slots where database = $1
    and slot_name !~ '^(?:drydock_[0-9a-f]{24}$|pg_[0-9]+_sync_)') as foreign_slots,
  (select count(*) from pg_catalog.pg_subscription s join pg_catalog.pg_database d on d.oid = s.subdbid
    where d.datname = $1) as subscriptions,
  (select coalesce(max(extract(epoch from pg_catalog.now() - xact_start)), 0)::int from pg_catalog.pg_stat_activity a
    join pg_catalog.pg_roles r on r.oid = a.usesysid
    where datname = $1 and backend_type = 'client backend' and not ${isOwnRoleSql}) as oldest_transaction_seconds,
  (select count(*) from pg_catalog.pg_stat_activity a join pg_catalog.pg_roles r on r.oid = a.usesysid
    where datname = $1 and backend_type = 'client backend' and not ${isOwnRoleSql}) as sessions,
  (select count(*) from pg_catalog.pg_authid where rolpassword ~ '^md5') as md5_passwords,
  (select count(*) from pg_catalog.pg_roles r where rolname !~ '^pg_' and not ${isOwnRoleSql}) as roles`;
/** Counts objects of the customer's database as a reader. */
const countsSql = `select
  (select count(*) from pg_catalog.pg_largeobject_metadata) as objects,
    pg_catalog.pg_relation_size('pg_catalog.pg_largeobject') as object_bytes,
  (select count(*) from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'S' and ${own}) as sequences,
  (select count(*) from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'm' and ${own}) as materialized_views,
  (select count(*) from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relkind = 'r' and a.attnum > 0 and not a.attisdropped and a.atttypid < 16384
      and a.atttypid::regtype::text ~ '^reg' and ${own}) as reg_columns`;
const number = z.coerce.number();
const serverSchema = z.object({
  from_major: number,
  size_bytes: number,
  prepared_transactions: number,
  foreign_slots: number,
  subscriptions: number,
  oldest_transaction_seconds: number,
  sessions: number,
  md5_passwords: number,
  roles: number,
});
const countsSchema = z.object({
  objects: number,
  object_bytes: number,
  sequences: number,
  materialized_views: number,
  reg_columns: number,
});

/**
 * Selects tables without a usable key. Replication finds a row of such a table by comparing all of its columns. It
 * cannot compare json and geometric types, or arrays, domains and composites of them; `parts` has the types of the
 * columns at any depth. It cannot find a row at all if the subscriber's key has a generated column, which replication
 * does not carry.
 */
const keylessSql = `with recursive w as (${withoutIdentitySql}),
  parts as (
    select w.oid as relid, a.atttypid as typid from w join pg_catalog.pg_attribute a on a.attrelid = w.oid
    where a.attnum > 0 and not a.attisdropped and a.attgenerated = ''
    union
    select p.relid, x.typid from parts p join pg_catalog.pg_type t on t.oid = p.typid
    cross join lateral (select t.typbasetype union all select t.typelem where t.typlen = -1
      union all select a.atttypid from pg_catalog.pg_attribute a
        where t.typtype = 'c' and a.attrelid = t.typrelid and a.attnum > 0 and not a.attisdropped) x (typid)
    where x.typid <> 0)
  select w.table, coalesce(s.n_live_tup, 0) as rows,
    coalesce(s.n_tup_upd + s.n_tup_del, 0) as changes,
    exists (select from parts p join pg_catalog.pg_type t on t.oid = p.typid
      where p.relid = w.oid and t.typtype not in ('c', 'd', 'e', 'r', 'm') and not (t.typelem <> 0 and t.typlen = -1)
      and not exists (select from pg_catalog.pg_opclass o join pg_catalog.pg_am m on m.oid = o.opcmethod
        where m.amname in ('btree', 'hash') and o.opcdefault and (o.opcintype = t.oid
          or exists (select from pg_catalog.pg_cast k where k.castsource = t.oid and k.casttarget = o.opcintype
            and k.castmethod = 'b' and k.castcontext = 'i')))) as cannot_compare,
    exists (select from pg_catalog.pg_index i where i.indrelid = w.oid and (i.indisprimary or i.indisreplident)
      and i.indisvalid and not (${isUsableKeySql})) as is_key_computed
  from w left join pg_catalog.pg_stat_all_tables s on s.relid = w.oid order by 1`;
const keylessSchema = z.object({
  table: z.string(),
  rows: number,
  changes: number,
  cannot_compare: z.boolean(),
  is_key_computed: z.boolean(),
});

/**
 * Selects tables whose hash partitioning may differ in the new database, so that a row belongs to another partition.
 * The hash may be of an oid, such as that of an enum's value, alone or within an array, range or row. Each database
 * assigns oids itself. The hash may also come from a function of the customer. `k.place` counts key columns from 0.
 */
const movingHashesSql = `select c.oid::regclass::text as name from pg_catalog.pg_partitioned_table p
  join pg_catalog.pg_class c on c.oid = p.partrelid
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where p.partstrat = 'h' and ${own} and exists (select from pg_catalog.generate_series(0, p.partnatts - 1) k (place)
    join pg_catalog.pg_opclass o on o.oid = p.partclass[k.place]
    left join pg_catalog.pg_attribute a on a.attrelid = c.oid and a.attnum = p.partattrs[k.place]
    where o.opcintype in ('anyenum'::regtype, 'anyarray'::regtype, 'anyrange'::regtype, 'anymultirange'::regtype,
      'record'::regtype)
      or o.opcintype = 'oid'::regtype and a.atttypid is distinct from 'oid'::regtype
      or o.oid >= 16384 and not exists (select from pg_catalog.pg_depend d
        where d.classid = 'pg_catalog.pg_opclass'::regclass and d.objid = o.oid and d.deptype = 'e'))
  order by 1`;

const extensionsSql = "select extname as name from pg_catalog.pg_extension where extname <> 'plpgsql' order by 1";
const extensionTablesSql = `select c.oid::regclass::text as name from pg_catalog.pg_class c join pg_catalog.pg_depend d
  on d.classid = 'pg_catalog.pg_class'::regclass and d.objid = c.oid and d.deptype = 'e' where c.relkind = 'r'
  order by 1`;
const unloggedSql = `select count(*) as count, coalesce(sum(pg_catalog.pg_relation_size(c.oid)), 0) as bytes
  from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and c.relpersistence = 'u' and ${own}`;
const namedSchema = z.object({ name: z.string() });

/**
 * Returns the first part of a condition for expressions that may have another value in a newer major, because that
 * major has other tables for text search and Unicode normalization. {@link callsSql} returns the second part.
 */
const changingSql = (expression: string): string =>
  `(${expression} ~ '\\m(to_tsvector|(plain|phrase|websearch_)?to_tsquery|ts_lexize|ts_headline|` +
  `jsonb?_to_tsvector|unaccent|"?normalize"?)\\('`;
/**
 * Returns the second part of the condition of {@link changingSql}: objects that call a function of the customer, which
 * may use the changed tables as well. pg_depend lists no calls of Postgres' own functions, so {@link changingSql} looks
 * for their names in the text.
 */
const callsSql = (catalogue: string, id: string): string =>
  ` or exists (select from pg_catalog.pg_depend p where p.classid = 'pg_catalog.${catalogue}'::regclass ` +
  `and p.objid = ${id} and p.refclassid = 'pg_catalog.pg_proc'::regclass))`;
const computedSql = `select 'column ' || pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)
    || '.' || pg_catalog.quote_ident(a.attname) as name
  from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    join pg_catalog.pg_attrdef d on d.adrelid = a.attrelid and d.adnum = a.attnum
  where a.attgenerated = 's' and not a.attisdropped and c.relkind in ('r', 'p') and not c.relispartition and ${own}
    and ${changingSql('pg_catalog.pg_get_expr(d.adbin, d.adrelid)')}${callsSql('pg_attrdef', 'd.oid')}
  union all select 'index ' || pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname)
  from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where (i.indexprs is not null or i.indpred is not null) and not c.relispartition and ${own}
    and ${changingSql('pg_catalog.pg_get_indexdef(i.indexrelid)')}${callsSql('pg_class', 'i.indexrelid')} order by 1`;
const textSearchSql = `select pg_catalog.quote_ident(n.nspname) || '.' || pg_catalog.quote_ident(c.relname) || '.' ||
    pg_catalog.quote_ident(a.attname) as name
  from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where a.atttypid = 'pg_catalog.tsvector'::regtype and a.attgenerated = '' and a.attnum > 0 and not a.attisdropped
    and c.relkind in ('r', 'p') and not c.relispartition and ${own} order by 1`;

async function tablesWithRows(client: pg.ClientBase): Promise<string[]> {
  const names = (await readRows(client, namedSchema, extensionTablesSql)).map(({ name }) => name);
  const filled: string[] = [];
  for (const name of names) if ((await client.query(`select from ${name} limit 1`)).rowCount === 1) filled.push(name);
  return filled;
}

export interface PrecheckRequest {
  /** The URL of the serving instance with the platform's role, for the database `postgres`. */
  url: string;
  databaseName: string;
  toMajor: number;
  extensionsOfTarget: readonly string[];
  freeBytes: number;
  signal?: AbortSignal | undefined;
}

/**
 * Returns the problems of an upgrade to a newer major, and the path that it would take. The customer's data is only
 * read.
 */
export const checkUpgrade = (request: PrecheckRequest): Promise<UpgradeReport> =>
  withReader({ ...request, tag: `precheck ${request.databaseName} ${request.toMajor}` }, async ({ admin, reader }) =>
    reportUpgrade(await gatherFacts(admin, reader, request)),
  );

export interface ReaderRequest extends Pick<PrecheckRequest, 'url' | 'databaseName' | 'signal'> {
  /** The comment of the check's roles. Leftover roles with the same comment are dropped. */
  tag: string;
}

/** Runs work with a superuser's session in `postgres` and a session of a temporary reader. */
export async function withReader<T>(
  { url, databaseName, tag, signal }: ReaderRequest,
  work: (sessions: { admin: pg.Client; reader: pg.Client }) => Promise<T>,
): Promise<T> {
  const server = await openSession(url, { purpose: 'admin', signal });
  try {
    const admin = server.client;
    await sweepTransferRoles(admin, tag);
    const login = await makeReader({ admin, database: databaseName, tag });
    try {
      const reader = await openSession(loginUrl(url, login, databaseName), { purpose: 'read', signal });
      try {
        return await work({ admin, reader: reader.client });
      } finally {
        await reader.close();
      }
    } finally {
      await dropTransferRole(admin, login.role);
    }
  } finally {
    await server.close();
  }
}

async function gatherFacts(server: pg.ClientBase, client: pg.ClientBase, request: PrecheckRequest): Promise<Facts> {
  const [whole] = await readRows(server, serverSchema, serverSql, [request.databaseName]);
  const [counts] = await readRows(client, countsSchema, countsSql);
  const [unlogged] = await readRows(client, z.object({ count: number, bytes: number }), unloggedSql);
  if (whole === undefined || counts === undefined || unlogged === undefined)
    throw new Error('the database does not answer its counts');
  return {
    fromMajor: whole.from_major,
    toMajor: request.toMajor,
    sizeBytes: whole.size_bytes,
    freeBytes: request.freeBytes,
    preparedTransactions: whole.prepared_transactions,
    foreignSlots: whole.foreign_slots,
    subscriptions: whole.subscriptions,
    oldestTransactionSeconds: whole.oldest_transaction_seconds,
    sessions: whole.sessions,
    extensions: (await readRows(client, namedSchema, extensionsSql)).map(({ name }) => name),
    extensionsOfTarget: request.extensionsOfTarget,
    extensionTables: await tablesWithRows(client),
    keyless: (await readRows(client, keylessSchema, keylessSql, [[], ['d', 'f']])).map(
      ({ cannot_compare: cannotCompare, is_key_computed: isKeyComputed, ...table }) => ({
        ...table,
        cannotCompare,
        isKeyComputed,
      }),
    ),
    movingHashes: (await readRows(client, namedSchema, movingHashesSql)).map(({ name }) => name),
    unlogged,
    largeObjects: { count: counts.objects, bytes: counts.object_bytes },
    sequences: counts.sequences,
    materializedViews: counts.materialized_views,
    regColumns: counts.reg_columns,
    computed: (await readRows(client, namedSchema, computedSql)).map(({ name }) => name),
    textSearchColumns: (await readRows(client, namedSchema, textSearchSql)).map(({ name }) => name),
    md5Passwords: whole.md5_passwords,
    roles: whole.roles,
  };
}
