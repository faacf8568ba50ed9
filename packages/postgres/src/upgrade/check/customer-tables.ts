import type pg from 'pg';
import { z } from 'zod';
import { listTables } from '../../dump/list-tables';
import type { TableEntry } from '../../dump/manifest';
import type { OwnObjects } from '../copy/own-objects';
import { readRows } from '../session';

export interface CustomerTable extends TableEntry {
  owner: string;
  /** Not UNLOGGED. */
  isLogged: boolean;
}

const ownerSchema = z.object({ schema: z.string(), name: z.string(), owner: z.string(), is_logged: z.boolean() });
const ownersSql = `select n.nspname as schema, c.relname as name, pg_catalog.pg_get_userbyid(c.relowner) as owner, c.relpersistence <> 'u' as is_logged
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.relkind = 'r' and c.relpersistence <> 't'`;

const keyOf = ({ schema, name }: { schema: string; name: string }): string => JSON.stringify([schema, name]);

/** The customer's tables that have rows of their own, largest first. */
export async function customerTables(client: pg.ClientBase, { schema: own }: OwnObjects): Promise<CustomerTable[]> {
  const known = new Map((await readRows(client, ownerSchema, ownersSql)).map((row) => [keyOf(row), row]));
  return (await listTables(client)).flatMap((table) => {
    const row = known.get(keyOf(table));
    return table.schema === own || row === undefined ? [] : [{ ...table, owner: row.owner, isLogged: row.is_logged }];
  });
}
