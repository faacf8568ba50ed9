import type pg from 'pg';
import { z } from 'zod';
import { computedColumns } from '../../dump/computed-columns';
import { hashTable, type TableToHash } from '../../dump/fingerprint-database';
import { qualify, quoteName } from '../../dump/list-tables';
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
 * may come from a later write, and the outcome is `undecided` unless a sequence is behind.
 */
export async function compareDatabases(move: Move, snapshotId: string | null): Promise<Comparison> {
  return withStage(move, async (stage) => {
    const differing: string[] = [];
    const [old, target, snapshot] = [
      await stage.reader('old'),
      await stage.reader('target'),
      await stage.reader('target', 1),
    ];
    await old.query('begin isolation level repeatable read read only');
    await snapshot.query('begin isolation level repeatable read read only');
    if (snapshotId !== null) await snapshot.query(`set transaction snapshot ${snapshot.escapeLiteral(snapshotId)}`);
    const tables = wholeTables(await customerTables(old, stage.own));
    const computed = await computedColumns(old);
    const recomputed: Recomputed[] = [];
    for (const [index, table] of tables.entries()) {
      const { name } = table;
      const columns = computed.get(table.leaf);
      if (!(await holdTheSame(old, snapshot, table))) differing.push(name);
      else if (columns) recomputed.push(...(await recomputedColumns(old, snapshot, table, columns)));
      move.progress?.((index + 1) / tables.length);
    }
    recomputed.push(...(await emptyViews(old, snapshot)));
    // Without the snapshot, a view that the customer has refreshed since the cutover would be reported.
    if (snapshotId !== null) recomputed.push(...(await recomputedViews(old, snapshot)));
    differing.push(...(await differingObjects(old, snapshot)));
    const behind = await sequencesBehind(old, target);
    const isUndecided = snapshotId === null && behind.length === 0 && differing.length > 0;
    const names = [...differing, ...behind];
    return {
      outcome: names.length === 0 ? 'equal' : isUndecided ? 'undecided' : 'different',
      tables: tables.length,
      names,
      recomputed,
    };
  });
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
    .map(({ name }) => `sequence ${name}`);
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
  old: pg.ClientBase,
  target: pg.ClientBase,
  table: WholeTable,
  columns: readonly string[],
): Promise<Recomputed[]> {
  const { name } = table;
  const recomputed: Recomputed[] = [];
  for (const column of columns) {
    if (await holdTheSame(old, target, { ...table, columns: [...table.columns, column] })) continue;
    const dependents = await readRows(target, namedSchema.extend({ is_view: z.boolean() }), dependentsSql, [
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
async function recomputedViews(old: pg.ClientBase, target: pg.ClientBase): Promise<Recomputed[]> {
  const filled = new Set((await readRows(target, namedSchema, viewsSql)).map(qualify));
  const recomputed: Recomputed[] = [];
  for (const name of (await readRows(old, namedSchema, viewsSql)).map(qualify))
    if (filled.has(name) && !(await holdTheSame(old, target, { name })))
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

/** Tells whether both tables have the same rows, by a hash. */
async function holdTheSame(old: pg.ClientBase, target: pg.ClientBase, table: TableToHash): Promise<boolean> {
  const [before, after] = await Promise.all([hashTable(old, table), hashTable(target, table)]);
  return before.rows === after.rows && before.hash === after.hash;
}
