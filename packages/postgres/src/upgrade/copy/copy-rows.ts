import type pg from 'pg';
import { z } from 'zod';
import { copyIn, copyOut } from '../../dump/copy-table';
import { qualify } from '../../dump/list-tables';
import { cleanBegin } from '../plan-store';
import { readRows, type Stage } from '../session';
import { UpgradeError } from '../upgrade-error';
import { type CustomerTable, customerTables } from './customer-tables';

interface CopyEnds {
  /** A reader of the old database. */
  from: pg.Client;
  /**
   * A loader of rows that acts as the table's owner, so that code that the customer has attached to the table runs as
   * the owner.
   */
  into: pg.Client;
}

interface CopyOptions {
  note?: () => Promise<unknown>;
  onBytes?: (bytes: number) => void;
  /**
   * The hash-partitioned table above this one, qualified: Postgres finds each row's partition. The target's partition
   * may hold rows of other partitions, so it is not emptied first.
   */
  root?: string | undefined;
}

/** Replaces one table's rows on the target, in the transaction that records `note`. Throws `copy_failed`. */
export async function copyRows(
  { from, into }: CopyEnds,
  table: CustomerTable,
  { note, onBytes = () => undefined, root }: CopyOptions = {},
): Promise<void> {
  await into.query(cleanBegin);
  try {
    if (root === undefined) await into.query(`truncate only ${qualify(table)}`);
    let sent = -1;
    const content = copyOut(from, table, ({ rows }) => {
      sent = rows;
    });
    const { rows } = await copyIn(into, table, { path: qualify(table), content }, { onBytes, root });
    if (rows !== sent) throw new UpgradeError('copy_failed', `${qualify(table)}: ${sent} rows went, ${rows} came`);
    await note?.();
    await into.query('commit');
  } catch (error) {
    await into.query('rollback').catch(() => undefined);
    throw error;
  }
}

const stateSchema = z.object({ state: z.string() });

/**
 * Reads a state that changes with the rows. A session reports its changes of a table when it ends at the latest, and
 * TRUNCATE gives the table another file. So once every session has ended, an equal state means equal rows. A report
 * that arrives late only causes one more copy.
 */
const stateSql = `select pg_catalog.concat_ws(' ', pg_catalog.pg_relation_filenode(c.oid),
    pg_catalog.pg_stat_get_tuples_inserted(c.oid),
  pg_catalog.pg_stat_get_tuples_updated(c.oid), pg_catalog.pg_stat_get_tuples_deleted(c.oid)) as state
  from pg_catalog.pg_class c where c.oid = $1::regclass`;

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
