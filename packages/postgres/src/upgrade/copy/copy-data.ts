import type pg from 'pg';
import { z } from 'zod';
import { copyIn, copyOut } from '../../dump/copy-table';
import { qualify } from '../../dump/list-tables';
import { isRefresh } from '../../load/statement.rules';
import { cleanBegin, type FailedStatement, noteDone, planRows, runPart } from '../plan-store';
import { publish, readHorizon, subscribe, waitUntilCopied, writeHorizon } from '../replication';
import { type Move, readRows, type Stage, UpgradeError, withStage } from '../session';
import { type CustomerTable, customerTables, widenIdentities } from './customer-tables';
import { copyLargeObjects } from './unreplicated';

const sizeSchema = z.object({ bytes: z.coerce.number() });
const sizeSql = 'select pg_catalog.pg_database_size(pg_catalog.current_database()) as bytes';

/** Copies all rows, two tables at a time, while nobody writes. Complete tables are skipped. */
async function copyOffline(stage: Stage, onProgress: (fraction: number) => void): Promise<void> {
  const old = await stage.reader('old');
  const tables = await customerTables(old, stage.own);
  const tokens = await planRows(stage, tables.map(qualify));
  const left = tables.filter((table) => tokens.has(qualify(table)));
  const [size] = await readRows(old, sizeSchema, sizeSql);
  let bytes = 0;
  const onBytes = (more: number): void => {
    bytes += more;
    onProgress(Math.min(1, bytes / Math.max(size?.bytes ?? 1, 1)));
  };
  const work = async (lane: number): Promise<void> => {
    for (let table = left.shift(); table !== undefined; table = left.shift()) {
      const { root } = table;
      const into = await stage.rowsLoader((root ?? table).owner, lane);
      const token = tokens.get(qualify(table)) ?? '';
      const note = () => noteDone(stage, into, token);
      await copyRows({ from: await stage.reader('old', lane), into }, table, { note, onBytes, root: root?.name });
    }
  };
  const outcomes = await Promise.allSettled([0, 1].map(work));
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed) throw failed.reason;
}

/**
 * Stage: copies every row, creates indexes, foreign keys and triggers, fills materialised views, copies large objects
 * and runs ANALYZE. With replication the customer may write. On the offline path the caller ensures that nobody writes
 * until the upgrade ends. A call after a crash continues the copy. Throws UpgradeError `replication_failed`,
 * `statement_failed`, `copy_failed`, and TransferError `copy_failed` for rows that the new version refuses.
 */
export async function copyData(move: Move): Promise<void> {
  await withStage(move, async (stage) => {
    const report = (from: number, to: number) => (fraction: number) => move.progress?.(from + (to - from) * fraction);
    if (move.path === 'offline') await copyOffline(stage, report(0, 0.7));
    else await copyLogical(stage, report(0, 0.7));
    await runPart(stage, 'keys');
    await runPart(stage, 'indexes', { lanes: 2, onDone: report(0.7, 0.9) });
    await runPart(stage, 'rest', { onFailure: ignoreFailedRefresh });
    const keeper = await stage.keeper();
    await writeHorizon(stage, await copyLargeObjects(await stage.reader('old'), keeper, await readHorizon(stage)));
    // ANALYZE runs the customer's functions as the table's owner, and does not let them change the role.
    await keeper.query('analyze');
    move.progress?.(1);
  });
}

/** Ignores a failed materialised view. It stays empty, and the comparison reports it. */
function ignoreFailedRefresh({ sql, error }: FailedStatement): void {
  if (!isRefresh({ outline: sql })) throw error;
}

async function copyLogical(stage: Stage, onProgress: (fraction: number) => void): Promise<void> {
  // The identities come first, because Postgres refuses UPDATE and DELETE in a published table that has no replica
  // identity.
  await widenIdentities(stage);
  await publish(stage);
  await subscribe(stage);
  await waitUntilCopied(stage, onProgress);
}

interface CopyEnds {
  /** A reader's session on the old database. */
  from: pg.Client;
  /** A loader's session as the table's owner, so that code of the table runs as the owner. */
  into: pg.Client;
}

interface CopyOptions {
  note?: () => Promise<unknown>;
  onBytes?: (bytes: number) => void;
  /**
   * The qualified name of the hash-partitioned table above this partition; see `hashRoots`. Rows are inserted into that
   * table, because the target may assign them to other partitions. With `root` the target's partition is not emptied
   * first, because it may already have rows from other partitions of the old database.
   */
  root?: string | undefined;
}

/** Finds a foreign key of another table to this one. TRUNCATE then refuses this table, even if both are empty. */
const referencedSql = `select from pg_catalog.pg_constraint k where k.contype = 'f' and k.conrelid <> k.confrelid
  and k.confrelid = pg_catalog.to_regclass($1)`;

/**
 * Removes the rows of a table on the target, but not those of inheriting tables. The loader's session checks no foreign
 * key.
 */
async function empty(into: pg.Client, table: string): Promise<void> {
  const { rowCount } = await into.query(referencedSql, [table]);
  await into.query(`${rowCount === 0 ? 'truncate' : 'delete from'} only ${table}`);
}

/** Replaces a table's rows on the target, in one transaction with `note`. Throws `copy_failed`. */
async function copyRows(
  { from, into }: CopyEnds,
  table: CustomerTable,
  { note, onBytes = () => undefined, root }: CopyOptions = {},
): Promise<void> {
  await into.query(cleanBegin);
  try {
    if (root === undefined) await empty(into, qualify(table));
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
 * Reads a state that changes with a table's rows: the table's file, and Postgres' counts of changed rows. A session
 * reports its counts at the latest when it ends, and TRUNCATE replaces the file. So after all sessions have ended, an
 * equal state means equal rows. A late report only causes another copy.
 */
const stateSql = `select pg_catalog.concat_ws(' ', pg_catalog.pg_relation_filenode(c.oid),
    pg_catalog.pg_stat_get_tuples_inserted(c.oid),
  pg_catalog.pg_stat_get_tuples_updated(c.oid), pg_catalog.pg_stat_get_tuples_deleted(c.oid)) as state
  from pg_catalog.pg_class c where c.oid = $1::regclass`;

/** An unlogged table, and its state at the copy. */
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

/** Copies the unlogged tables, because replication does not transfer them. */
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

/**
 * Copies each unlogged table again whose rows have changed since its copy. All sessions of customers must have ended.
 */
export async function copyChangedUnlogged(stage: Stage, copied: readonly CopiedTable[]): Promise<void> {
  const old = await stage.reader('old');
  for (const { table, state } of copied) if ((await readState(old, table)) !== state) await copy(stage, table);
}
