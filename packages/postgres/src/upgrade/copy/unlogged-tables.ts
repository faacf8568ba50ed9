import type pg from 'pg';
import { z } from 'zod';
import { qualify } from '../../dump/list-tables';
import { type CustomerTable, customerTables } from '../check/customer-tables';
import { readRows, type Stage } from '../session';
import { copyRows } from './copy-rows';

const stateSchema = z.object({ state: z.string() });

/**
 * Reads a state of a table that changes with its rows. Postgres counts changes of a table when a session ends at the
 * latest, and TRUNCATE gives the table another file. So once every session has ended, the same state means the same
 * rows. A count that arrives late only causes one more copy.
 */
const stateSql = `select pg_catalog.concat_ws(' ', pg_catalog.pg_relation_filenode(c.oid), pg_catalog.pg_stat_get_tuples_inserted(c.oid),
  pg_catalog.pg_stat_get_tuples_updated(c.oid), pg_catalog.pg_stat_get_tuples_deleted(c.oid)) as state from pg_catalog.pg_class c where c.oid = $1::regclass`;

/** An unlogged table and the state in which it was copied. */
export interface CopiedTable {
  table: CustomerTable;
  state: string;
}

async function readState(old: pg.ClientBase, table: CustomerTable): Promise<string> {
  const [found] = await readRows(old, stateSchema, stateSql, [qualify(table)]);
  return found?.state ?? '';
}

async function copy(stage: Stage, table: CustomerTable): Promise<void> {
  await copyRows({ from: await stage.reader('old'), into: await stage.rowsLoader(table.owner) }, table);
}

/** Copies every unlogged table, which replication does not see. */
export async function copyUnlogged(stage: Stage): Promise<CopiedTable[]> {
  const old = await stage.reader('old');
  const copied: CopiedTable[] = [];
  for (const table of (await customerTables(old, stage.own)).filter(({ isLogged }) => !isLogged)) {
    const state = await readState(old, table);
    await copy(stage, table);
    copied.push({ table, state });
  }
  return copied;
}

/** Copies the unlogged tables again that have changed since. No session of a customer may be left. */
export async function copyChangedUnlogged(stage: Stage, copied: readonly CopiedTable[]): Promise<void> {
  const old = await stage.reader('old');
  for (const { table, state } of copied) if ((await readState(old, table)) !== state) await copy(stage, table);
}
