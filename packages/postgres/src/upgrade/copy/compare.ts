import pg from 'pg';
import { z } from 'zod';
import { computedColumns } from '../../dump/computed-columns';
import { hashTable, type TableToHash } from '../../dump/fingerprint-database';
import { qualify, quoteName } from '../../dump/list-tables';
import { sqlStateOf } from '../../session/transfer-error';
import { type Move, readRows, withStage } from '../session';
import { type CustomerTable, customerTables } from './customer-tables';
import { hashLargeObject, listLargeObjects, readPositions, sequenceNames } from './unreplicated';

export interface Comparison {
  outcome: 'equal' | 'different' | 'undecided';
  tables: number;
  names: readonly string[];
  /** Values that the two versions of Postgres compute differently. They do not count as a difference. */
  recomputed: readonly Recomputed[];
}

/**
 * Stage: compares rows, large objects and sequences of the frozen old database with the new one. Values that Postgres
 * computes are compared separately, in `recomputed`. `snapshotId` names a snapshot of the new database that was
 * exported at the cutover, or is null if the snapshot was lost. Without the snapshot, different rows or large objects
 * may come from a later write, and the outcome is `undecided` unless a sequence is behind. The snapshot does not
 * protect from changes of the schema: a table or sequence that differs and was altered since is undecided as well.
 */
export async function compareDatabases(move: Move, snapshotId: string | null): Promise<Comparison> {
  return withStage(move, async (stage) => {
    const differing: string[] = [];
    const undecided: string[] = [];
    const sessions: Sessions = {
      old: await stage.reader('old'),
      present: await stage.reader('target'),
      snapshot: await stage.reader('target', 1),
    };
    const { old, snapshot } = sessions;
    await old.query('begin isolation level repeatable read read only');
    await snapshot.query('begin isolation level repeatable read read only');
    if (snapshotId !== null) await snapshot.query(`set transaction snapshot ${pg.escapeLiteral(snapshotId)}`);
    await snapshot.query(`savepoint ${savepoint}`);
    // Sequences come first, because the customer may set one back at any time, and no snapshot shows where it was.
    const behind: string[] = [];
    for (const name of await sequencesBehind(old, sessions.present))
      ((await isAltered(sessions, { name })) ? undecided : behind).push(`sequence ${name}`);
    const tables = wholeTables(await customerTables(old, stage.own));
    const computed = await computedColumns(old);
    const recomputed: Recomputed[] = [];
    for (const [index, table] of tables.entries()) {
      const { name } = table;
      const columns = computed.get(table.leaf);
      const outcome = await compareRows(sessions, table);
      if (outcome === 'different') differing.push(name);
      else if (outcome === 'undecided') undecided.push(name);
      else if (columns) recomputed.push(...(await recomputedColumns(sessions, table, columns)));
      move.progress?.((index + 1) / tables.length);
    }
    recomputed.push(...(await emptyViews(old, snapshot)));
    // Without the snapshot, a view that the customer has refreshed since the cutover would be reported.
    if (snapshotId !== null) recomputed.push(...(await recomputedViews(sessions)));
    differing.push(...(await differingObjects(old, snapshot)));
    const result = { tables: tables.length, recomputed };
    if (behind.length > 0 || (snapshotId !== null && differing.length > 0))
      return { outcome: 'different', names: [...differing, ...behind], ...result };
    const names = [...differing, ...undecided];
    return { outcome: names.length === 0 ? 'equal' : 'undecided', names, ...result };
  });
}

interface Sessions {
  /** The frozen old database. */
  old: pg.ClientBase;
  /** The new database as it is now. */
  present: pg.ClientBase;
  /** The new database as it was at the cutover, or at the beginning of the comparison if that snapshot was lost. */
  snapshot: pg.ClientBase;
}

/**
 * Treats the partitions of a hash-partitioned table as one table, because a row may belong to another partition in the
 * new database.
 */
function wholeTables(tables: readonly CustomerTable[]): WholeTable[] {
  const whole = new Map<string, WholeTable>();
  for (const { root, columns, ...table } of tables) {
    const leaf = qualify(table);
    const name = root?.name ?? leaf;
    whole.set(name, whole.get(name) ?? { name, columns, leaf, isRoot: root !== undefined });
  }
  return [...whole.values()];
}

async function differingObjects(old: pg.ClientBase, target: pg.ClientBase): Promise<string[]> {
  const [before, after] = [await listLargeObjects(old), await listLargeObjects(target)];
  const names: string[] = [];
  for (const oid of new Set([...before, ...after])) {
    const [left, right] = await Promise.all([hashLargeObject(old, oid), hashLargeObject(target, oid)]);
    if (left !== right) names.push(`large object ${oid}`);
  }
  return names;
}

/**
 * Returns sequences of the new database that are behind the old ones. The snapshot does not cover sequences, so those
 * of the new database may be ahead. A sequence that counts down or cycles only has to exist.
 */
async function sequencesBehind(old: pg.ClientBase, target: pg.ClientBase): Promise<string[]> {
  const names = await sequenceNames(old);
  const after = new Map(
    (await readPositions(target, await sequenceNames(target))).map((position) => [position.name, position]),
  );
  const free = await readRows(
    old,
    z.object({ schema: z.string(), name: z.string() }),
    `select n.nspname as schema, c.relname as name from pg_catalog.pg_sequence s
      join pg_catalog.pg_class c on c.oid = s.seqrelid
      join pg_catalog.pg_namespace n on n.oid = c.relnamespace where s.seqincrement < 0 or s.seqcycle`,
  );
  const isFree = new Set(free.map(qualify));
  return (await readPositions(old, names))
    .filter(({ name, last_value: last }) => {
      const now = after.get(name)?.last_value;
      return now === undefined || (!isFree.has(name) && BigInt(now) < BigInt(last));
    })
    .map(({ name }) => name);
}

/** A computed value whose result in the new version differs from the stored one. */
interface Recomputed {
  /** The object with its kind, such as `column "public"."notes"."search"`. */
  object: string;
  /** Statements that compute the stored values again; empty if there are none. */
  statements: readonly string[];
  /** Set for a materialized view that the new version could not fill. */
  isEmpty?: true;
}

interface WholeTable {
  /** The quoted and qualified name. */
  name: string;
  /**
   * The written columns, without generated ones. They are compared by name, because the new database may have the
   * columns of an inheriting table in another order.
   */
  columns: readonly string[];
  /** The table or one of its partitions, which have the same generated columns. */
  leaf: string;
  /** True for a partitioned table, whose rows are in its partitions. */
  isRoot: boolean;
}

const own = "n.nspname !~ '^pg_' and n.nspname <> 'information_schema'";
const namedSchema = z.object({ schema: z.string(), name: z.string() });

/** Selects the indexes and materialized views that store values of a column. */
const dependentsSql = `select distinct n.nspname as schema, c.relname as name, c.relkind = 'm' as is_view
  from pg_catalog.pg_attribute a
  join pg_catalog.pg_depend d on d.refclassid = 'pg_catalog.pg_class'::regclass and d.refobjid = a.attrelid
  and d.refobjsubid = a.attnum
  left join pg_catalog.pg_rewrite r on d.classid = 'pg_catalog.pg_rewrite'::regclass and r.oid = d.objid
  join pg_catalog.pg_class c on c.oid = case when d.classid = 'pg_catalog.pg_class'::regclass then d.objid else
    r.ev_class end
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where a.attrelid in (select pg_catalog.to_regclass($1)::oid union select relid
    from pg_catalog.pg_partition_tree(pg_catalog.to_regclass($1))) and a.attname = $2 and c.relkind in ('i', 'm')
  order by 3, 1, 2`;

/**
 * Returns the differing generated columns of a table with equal written columns. Each value is compared together with
 * its row.
 */
async function recomputedColumns(
  sessions: Sessions,
  table: WholeTable,
  columns: readonly string[],
): Promise<Recomputed[]> {
  const { name } = table;
  const recomputed: Recomputed[] = [];
  for (const column of columns) {
    const outcome = await compareRows(sessions, { ...table, columns: [...table.columns, column] });
    if (outcome !== 'different') continue;
    const dependents = await readRows(sessions.snapshot, namedSchema.extend({ is_view: z.boolean() }), dependentsSql, [
      name,
      column,
    ]);
    recomputed.push({
      object: `column ${name}.${quoteName(column)}`,
      statements: dependents.map(
        (dependent) => `${dependent.is_view ? 'REFRESH MATERIALIZED VIEW' : 'REINDEX INDEX'} ${qualify(dependent)};`,
      ),
    });
  }
  return recomputed;
}

const viewsSql = `select n.nspname as schema, c.relname as name from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'm' and c.relispopulated and ${own} order by 1, 2`;

/** Returns the differing materialised views. The new version fills them itself, so a view that was stale differs. */
async function recomputedViews(sessions: Sessions): Promise<Recomputed[]> {
  const { old, snapshot } = sessions;
  const filled = new Set((await readRows(snapshot, namedSchema, viewsSql)).map(qualify));
  const recomputed: Recomputed[] = [];
  for (const name of (await readRows(old, namedSchema, viewsSql)).map(qualify))
    if (filled.has(name) && (await compareRows(sessions, { name })) === 'different')
      recomputed.push({ object: `materialized view ${name}`, statements: [`REFRESH MATERIALIZED VIEW ${name};`] });
  return recomputed;
}

/** Returns the views that have content only in the old database. */
async function emptyViews(old: pg.ClientBase, target: pg.ClientBase): Promise<Recomputed[]> {
  const filled = new Set((await readRows(target, namedSchema, viewsSql)).map(qualify));
  const empty = (await readRows(old, namedSchema, viewsSql)).map(qualify).filter((name) => !filled.has(name));
  return empty.map((name) => ({
    object: `materialized view ${name}`,
    statements: [`REFRESH MATERIALIZED VIEW ${name};`],
    isEmpty: true,
  }));
}

/**
 * Compares the rows of a table or a materialized view by a hash. Returns `undecided` if they cannot be compared because
 * the customer has altered the table since the cutover.
 */
async function compareRows(sessions: Sessions, table: TableToHash): Promise<Comparison['outcome']> {
  const { old, snapshot } = sessions;
  const [before, after] = await Promise.all([hashTable(old, table), hashAndRelease(snapshot, table)]);
  if (after !== null && before.rows === after.rows && before.hash === after.hash) return 'equal';
  return (await isAltered(sessions, table, after === null)) ? 'undecided' : 'different';
}

const savepoint = 'compared';
/**
 * The SQLSTATEs of a table that cannot be read because it was altered: it is gone, a column is gone, an object of
 * another kind has its name, its view is not filled, or a transaction that alters it holds its lock.
 */
const alteredCodes: ReadonlySet<unknown> = new Set(['42P01', '42703', '42809', '55000', '55P03']);

/**
 * Hashes a table of the new database and releases its lock, so that the customer's DDL waits for one table only.
 * Returns null if the table cannot be read any more.
 */
async function hashAndRelease(
  snapshot: pg.ClientBase,
  table: TableToHash,
): Promise<Awaited<ReturnType<typeof hashTable>> | null> {
  const hashed = await hashTable(snapshot, table).catch((error: unknown) => {
    if (alteredCodes.has(sqlStateOf(error))) return null;
    throw error;
  });
  await snapshot.query(`rollback to savepoint ${savepoint}`);
  return hashed;
}

/**
 * Selects the catalogue's rows that decide what a table, a view or a sequence holds and shows: its files, its columns,
 * and the labels and fields of the database's own types. With `$2`, partitions are included. TRUNCATE, RESTART and a
 * rewritten table have a new file, in which an earlier snapshot sees no rows. A name is resolved by joins, because
 * regclass ignores the snapshot.
 */
const stateSql = `with recursive tree (oid) as (
    select c.oid from pg_catalog.parse_ident($1) i (parts)
    join pg_catalog.pg_namespace n on n.nspname = i.parts[1]
    join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = i.parts[2]
    union all select i.inhrelid from tree t join pg_catalog.pg_inherits i on i.inhparent = t.oid where $2),
  relations as (
    select c.oid, c.relkind, c.relfilenode, (select pg_catalog.json_agg(
        pg_catalog.json_build_array(a.attnum, a.attname, a.atttypid, a.attisdropped) order by a.attnum)
      from pg_catalog.pg_attribute a where a.attrelid = c.oid and a.attnum > 0) as columns
    from pg_catalog.pg_class c where c.oid in (select oid from tree) or c.relkind = 'c')
  select exists (select from tree) as is_there,
    pg_catalog.concat_ws(' ', (select pg_catalog.json_agg(r order by r.oid) from relations r),
      (select pg_catalog.json_agg(pg_catalog.json_build_array(e.oid, e.enumlabel) order by e.oid)
        from pg_catalog.pg_enum e)) as state`;
const stateSchema = z.object({ is_there: z.boolean(), state: z.string() });

/**
 * Tells whether a table, a view or a sequence that the new database had at the cutover was altered or dropped since. An
 * object that could not be read counts as altered, because a transaction that alters it may not have ended yet.
 */
async function isAltered(
  { snapshot, present }: Sessions,
  { name, isRoot = false }: TableToHash,
  isUnreadable = false,
): Promise<boolean> {
  const [then] = await readRows(snapshot, stateSchema, stateSql, [name, isRoot]);
  const [now] = await readRows(present, stateSchema, stateSql, [name, isRoot]);
  return then?.is_there === true && (isUnreadable || then.state !== now?.state);
}
