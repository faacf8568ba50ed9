import type pg from 'pg';
import { z } from 'zod';
import { computedColumns } from '../../dump/computed-columns';
import { qualify } from '../../dump/list-tables';
import { type Move, readRows, withStage } from '../session';
import { type CustomerTable, customerTables } from './customer-tables';
import { hashLargeObject, listLargeObjects } from './large-objects';
import {
  emptyViews,
  holdTheSame,
  type Recomputed,
  recomputedColumns,
  recomputedViews,
  type WholeTable,
} from './recomputed';
import { readPositions, sequenceNames } from './sequences';

export interface Comparison {
  outcome: 'equal' | 'different' | 'undecided';
  tables: number;
  names: readonly string[];
  /** Values that Postgres computes and that the two versions compute differently. They are no difference in content. */
  recomputed: readonly Recomputed[];
}

/**
 * Stage: compares the content that the customer wrote, in the frozen old database and in the new one: hashes of the
 * rows, the large objects and the sequences. Values that Postgres computes from this content are compared separately,
 * in `recomputed`. `snapshotId` names the snapshot of the new database at the cutover, whose transaction is still open.
 * It is null when that snapshot was lost. Then a difference may come from a write after the cutover, and the outcome is
 * `undecided`.
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
      if (!(await holdTheSame(old, snapshot, { ...table, columns: columns && table.columns }))) differing.push(name);
      else if (columns) recomputed.push(...(await recomputedColumns(old, snapshot, table, columns)));
      move.progress?.((index + 1) / tables.length);
    }
    recomputed.push(...(await emptyViews(old, snapshot)));
    // Views are compared only with the snapshot. Without it, a view that the customer has refreshed since the cutover
    // would be reported.
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
 * Joins the partitions of a hash-partitioned table, because a row may belong to another of them in the new database.
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
 * Sequences are not part of a snapshot, so the new one may be ahead but not behind. A sequence that counts down or
 * cycles only has to exist.
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
