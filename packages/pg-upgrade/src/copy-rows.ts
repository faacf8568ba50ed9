import { copyIn, copyOut } from '@drydock/pg-transfer/copy-table';
import { listTables, qualify } from '@drydock/pg-transfer/list-tables';
import type { TableEntry } from '@drydock/pg-transfer/manifest';
import type pg from 'pg';
import { z } from 'zod';
import { ownSchema } from './own-objects';
import { readRows } from './session';
import { UpgradeError } from './upgrade-error';

const namedSchema = z.object({ schema: z.string(), name: z.string() });
const unloggedSql = `select n.nspname as schema, c.relname as name from pg_catalog.pg_class c
  join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and c.relpersistence = 'u'`;

/** The customer's tables that have rows of their own, largest first. */
export async function customerTables(client: pg.ClientBase): Promise<TableEntry[]> {
  return (await listTables(client)).filter(({ schema }) => schema !== ownSchema);
}

/** Tables outside of the log, which replication does not see. */
export async function unloggedTables(client: pg.ClientBase): Promise<TableEntry[]> {
  const unlogged = new Set((await readRows(client, namedSchema, unloggedSql)).map(qualify));
  return (await customerTables(client)).filter((table) => unlogged.has(qualify(table)));
}

/** One table's rows in place of what the target has, in the transaction that `note` closes. Returns the bytes. Throws `copy_failed`. */
export async function copyRows(
  old: pg.Client,
  target: pg.Client,
  table: TableEntry,
  { note, onBytes }: { note?: () => Promise<unknown>; onBytes?: (bytes: number) => void } = {},
): Promise<void> {
  await target.query(`begin; set local session_replication_role = replica; truncate only ${qualify(table)}`);
  try {
    let sent = -1;
    const content = copyOut(old, table, ({ rows }) => {
      sent = rows;
    });
    const { rows } = await copyIn(target, table, { path: qualify(table), content }, onBytes ?? (() => undefined));
    if (rows !== sent) throw new UpgradeError('copy_failed', `${qualify(table)}: ${sent} rows went, ${rows} came`);
    await note?.();
    await target.query('commit');
  } catch (error) {
    await target.query('rollback').catch(() => undefined);
    throw error;
  }
}
