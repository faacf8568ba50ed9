import type pg from 'pg';
import { z } from 'zod';
import { isPermanentSqlState, sqlStateOf } from '../session/transfer-error';
import { type ComputedColumns, computedSchema, type TableEntry } from './dump-format';
import { qualify, quoteName } from './list-tables';

const columnsSql = `select n.nspname as schema, c.relname as name, a.attname as column
  from pg_catalog.pg_attribute a join pg_catalog.pg_class c on c.oid = a.attrelid
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace
  where c.relkind = 'r' and a.attnum > 0 and not a.attisdropped and a.attgenerated = 's' and n.nspname !~ '^pg_'
  and n.nspname <> 'information_schema'
  order by a.attrelid, a.attnum`;
const columnSchema = z.array(z.object({ schema: z.string(), name: z.string(), column: z.string() }));

/**
 * Returns the stored generated columns of each table, by the table's qualified name. A dump does not contain the values
 * of generated columns. A load computes them again.
 */
export async function computedColumns(client: pg.ClientBase): Promise<Map<string, string[]>> {
  const columns = new Map<string, string[]>();
  for (const row of columnSchema.parse((await client.query(columnsSql)).rows))
    columns.set(qualify(row), [...(columns.get(qualify(row)) ?? []), row.column]);
  return columns;
}

const hashOf = (values: string): string =>
  `pg_catalog.hashtextextended(pg_catalog.textin(pg_catalog.record_out(row(${values}))), 0)`;
const sumOf = (values: string): string => `coalesce(sum(${hashOf(values)}), 0)::text`;

/**
 * Sums hashes over a table's rows: one sum for the columns that are not generated, and one for each generated column. A
 * generated value is hashed together with the ordinary columns of its row. No code of the customer runs.
 */
export async function hashComputed(
  client: pg.ClientBase,
  table: TableEntry,
  columns: readonly string[],
): Promise<ComputedColumns> {
  const written = hashOf(table.columns.map((column) => `t.${quoteName(column)}`).join(', '));
  const values = columns.map((column, index) => `, t.${quoteName(column)} as c${index}`).join('');
  const sums = columns.map((_, index) => `, ${sumOf(`r.w, r.c${index}`)}`).join('');
  const sql = `select coalesce(sum(r.w), 0)::text as written, array[''${sums}] as sums
    from (select ${written} as w${values} from only ${qualify(table)} as t offset 0) as r`;
  const [row] = z
    .tuple([z.object({ written: z.string(), sums: z.array(z.string()) })])
    .parse((await client.query(sql)).rows);
  return computedSchema.parse({
    written: row.written,
    columns: columns.map((name, index) => ({ name, hash: row.sums[index + 1] })),
  });
}

const baseSql = `select b.attname as name from pg_catalog.pg_attrdef d
  join pg_catalog.pg_attribute a on a.attrelid = d.adrelid and a.attnum = d.adnum
  join pg_catalog.pg_depend k on k.classid = 'pg_catalog.pg_attrdef'::regclass and k.objid = d.oid
    and k.refclassid = 'pg_catalog.pg_class'::regclass and k.refobjid = d.adrelid
  join pg_catalog.pg_attribute b on b.attrelid = d.adrelid and b.attnum = k.refobjsubid and b.attnum <> a.attnum
  where d.adrelid = (select c.oid from pg_catalog.parse_ident($1) i (parts)
    join pg_catalog.pg_namespace n on n.nspname = i.parts[1]
    join pg_catalog.pg_class c on c.relnamespace = n.oid and c.relname = i.parts[2]) and a.attname = $2
    order by b.attnum limit 1`;
const baseSchema = z.array(z.object({ name: z.string() }));

/**
 * Returns a column that the generated column depends on, or null if there is none. An UPDATE of that column makes
 * Postgres compute the generated column again.
 */
export async function baseColumn(client: pg.ClientBase, table: string, column: string): Promise<string | null> {
  const [base] = baseSchema.parse((await client.query(baseSql, [table, column])).rows);
  return base?.name ?? null;
}

/**
 * Calls {@link hashComputed} in a savepoint, so that a failure does not end the dump's transaction. Returns undefined
 * without `columns`, or if Postgres cannot hash a row, for example because its text is too large.
 */
export async function hashIfPossible(
  client: pg.ClientBase,
  table: TableEntry,
  columns: readonly string[] | undefined,
): Promise<ComputedColumns | undefined> {
  if (columns === undefined) return undefined;
  await client.query('savepoint computed');
  try {
    return await hashComputed(client, table, columns);
  } catch (error) {
    if (!isPermanentSqlState(sqlStateOf(error)) && sqlStateOf(error) !== outOfMemory) throw error;
    await client.query('rollback to savepoint computed');
    return undefined;
  } finally {
    await client.query('release savepoint computed').catch(() => undefined);
  }
}

const outOfMemory = '53200';
