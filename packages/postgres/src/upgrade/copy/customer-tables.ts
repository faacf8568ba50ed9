import type pg from 'pg';
import { z } from 'zod';
import { hashRoots, listTables, qualify } from '../../dump/list-tables';
import type { TableEntry } from '../../dump/manifest';
import { readRows } from '../session';
import type { OwnObjects } from './own-objects';

export interface CustomerTable extends TableEntry {
  owner: string;
  /** The hash-partitioned table above this one (qualified): see {@link hashRoots}. */
  root?: { name: string; owner: string };
  /** False for an UNLOGGED table. */
  isLogged: boolean;
}

const ownerSchema = z.object({ schema: z.string(), name: z.string(), owner: z.string(), is_logged: z.boolean() });
const ownersSql = `select n.nspname as schema, c.relname as name, pg_catalog.pg_get_userbyid(c.relowner) as owner,
    c.relpersistence <> 'u' as is_logged
  from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace where c.relkind in ('r', 'p')
  and c.relpersistence <> 't'`;

/** Returns the customer's tables with rows of their own, the largest first. */
export async function customerTables(client: pg.ClientBase, { schema: own }: OwnObjects): Promise<CustomerTable[]> {
  const known = new Map((await readRows(client, ownerSchema, ownersSql)).map((row) => [qualify(row), row]));
  const roots = await hashRoots(client);
  return (await listTables(client)).flatMap((table) => {
    const row = known.get(qualify(table));
    if (table.schema === own || row === undefined) return [];
    const name = roots.get(qualify(table));
    const root = name === undefined ? {} : { root: { name, owner: known.get(name)?.owner ?? row.owner } };
    return [{ ...table, owner: row.owner, isLogged: row.is_logged, ...root }];
  });
}
