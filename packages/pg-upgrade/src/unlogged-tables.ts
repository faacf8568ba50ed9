import { qualify } from '@drydock/pg-transfer/list-tables';
import type { TableEntry } from '@drydock/pg-transfer/manifest';
import type pg from 'pg';
import { z } from 'zod';
import { copyRows, unloggedTables } from './copy-rows';
import { readRows } from './session';

const stateSchema = z.object({ state: z.string() });

/**
 * Changes of a table are counted when a session ends at the latest, and TRUNCATE gives it another file: after every session has ended, the same state means the same rows.
 * A count that arrives late only makes us copy once more.
 */
const stateSql = `select pg_catalog.concat_ws(' ', pg_catalog.pg_relation_filenode(c.oid), pg_catalog.pg_stat_get_tuples_inserted(c.oid),
  pg_catalog.pg_stat_get_tuples_updated(c.oid), pg_catalog.pg_stat_get_tuples_deleted(c.oid)) as state from pg_catalog.pg_class c where c.oid = $1::regclass`;

/** An unlogged table and the state in which it was copied. */
export interface CopiedTable {
  table: TableEntry;
  state: string;
}

async function readState(old: pg.ClientBase, table: TableEntry): Promise<string> {
  const [found] = await readRows(old, stateSchema, stateSql, [qualify(table)]);
  return found?.state ?? '';
}

/** Copies every unlogged table, which replication does not see. */
export async function copyUnlogged(old: pg.Client, target: pg.Client): Promise<CopiedTable[]> {
  const copied: CopiedTable[] = [];
  for (const table of await unloggedTables(old)) {
    const state = await readState(old, table);
    await copyRows(old, target, table);
    copied.push({ table, state });
  }
  return copied;
}

/** Copies again those that have changed since. No customer's session may be left. */
export async function copyChangedUnlogged(old: pg.Client, target: pg.Client, copied: readonly CopiedTable[]): Promise<void> {
  for (const { table, state } of copied) if ((await readState(old, table)) !== state) await copyRows(old, target, table);
}
