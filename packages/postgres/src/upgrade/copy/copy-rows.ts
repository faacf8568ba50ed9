import type pg from 'pg';
import { copyIn, copyOut } from '../../dump/copy-table';
import { qualify } from '../../dump/list-tables';
import type { CustomerTable } from '../check/customer-tables';
import { cleanBegin } from '../plan-store';
import { UpgradeError } from '../upgrade-error';

export interface CopyEnds {
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
   * The partitioned table that finds each row's partition, qualified. It may hold rows of other tables, so none of its
   * rows are removed first.
   */
  root?: string | undefined;
}

/** Replaces the target's rows of one table, in the transaction that `note` commits. Throws `copy_failed`. */
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
