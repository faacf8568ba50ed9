import type pg from 'pg';
import { z } from 'zod';
import { hashTable, type TableToHash } from '../../dump/fingerprint-database';
import { qualify, quoteName } from '../../dump/list-tables';
import { readRows } from '../session';

/**
 * A value that Postgres computes from what the customer wrote, and for which the new version computes another result
 * than the old one has stored.
 */
export interface Recomputed {
  /** With its kind, such as `column "public"."notes"."search"`. */
  object: string;
  /** Statements that compute again what stores the value. Empty when nothing does. */
  statements: readonly string[];
  /** A materialized view that the new version could not fill. */
  isEmpty?: true;
}

/** A table that is compared as one. */
export interface WholeTable {
  /** Quoted and qualified. */
  name: string;
  /** The columns that are written: the generated ones are not among them. */
  columns: readonly string[];
  /** The table itself, or one of its partitions: they have the same generated columns. */
  leaf: string;
  /** Its rows are those of its partitions. */
  isRoot: boolean;
}

const own = "n.nspname !~ '^pg_' and n.nspname <> 'information_schema'";
const namedSchema = z.object({ schema: z.string(), name: z.string() });

/** Finds the indexes and materialized views that store values of a column. */
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
 * Returns the generated columns that differ, of a table whose written columns are equal. Each value is compared
 * together with its row.
 */
export async function recomputedColumns(
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

/**
 * Returns the materialised views that differ. The new version fills them itself, so a view that was stale before
 * differs.
 */
export async function recomputedViews(old: pg.ClientBase, target: pg.ClientBase): Promise<Recomputed[]> {
  const filled = new Set((await readRows(target, namedSchema, viewsSql)).map(qualify));
  const recomputed: Recomputed[] = [];
  for (const name of (await readRows(old, namedSchema, viewsSql)).map(qualify))
    if (filled.has(name) && !(await holdTheSame(old, target, { name })))
      recomputed.push({ object: `materialized view ${name}`, statements: [`REFRESH MATERIALIZED VIEW ${name};`] });
  return recomputed;
}

/** Returns the views that have contents in the old database and none in the new one. */
export async function emptyViews(old: pg.ClientBase, target: pg.ClientBase): Promise<Recomputed[]> {
  const filled = new Set((await readRows(target, namedSchema, viewsSql)).map(qualify));
  const empty = (await readRows(old, namedSchema, viewsSql)).map(qualify).filter((name) => !filled.has(name));
  return empty.map((name) => ({
    object: `materialized view ${name}`,
    statements: [`REFRESH MATERIALIZED VIEW ${name};`],
    isEmpty: true,
  }));
}

/** Whether both databases hold the same rows, by a hash over them. */
export async function holdTheSame(old: pg.ClientBase, target: pg.ClientBase, table: TableToHash): Promise<boolean> {
  const [before, after] = await Promise.all([hashTable(old, table), hashTable(target, table)]);
  return before.rows === after.rows && before.hash === after.hash;
}
