import pg from 'pg';
import { z } from 'zod';
import { runStatement } from '../session/session';

const name = pg.escapeIdentifier;

/** SQLSTATEs of an undefined function, table, type, schema or column. */
const undefinedCodes = new Set(['42883', '42P01', '42704', '3F000', '42703']);

const functionsSql = `select pg_catalog.format('%I.%I(%s)', n.nspname, p.proname,
    pg_catalog.pg_get_function_identity_arguments(p.oid)) as name,
    case p.prokind when 'p' then 'procedure' else 'function' end as kind
  from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
  join pg_catalog.pg_language l on l.oid = p.prolang
  where n.nspname !~ '^pg_' and n.nspname <> 'information_schema' and p.prokind in ('f', 'p')
  and l.lanname in ('sql', 'plpgsql') and p.prosqlbody is null
    and pg_catalog.pg_get_userbyid(p.proowner) = current_user
    and not coalesce(p.proconfig::pg_catalog.text ~ 'search_path=', false)
    and not exists (select from pg_catalog.pg_depend d where d.classid = 'pg_catalog.pg_proc'::regclass
      and d.objid = p.oid and d.deptype = 'e')`;
const functionSchema = z.array(z.object({ name: z.string(), kind: z.string() }));

/**
 * Runs a statement of a dump. Functions often name other objects without a schema, but a load has an empty search path.
 * A statement that fails for such a name runs again with the customer's path, which is then set in the session and in
 * the functions of the session's role. For indexes and materialised views, Postgres 17 and later ignores the session's
 * path and uses only a function's own.
 */
export async function runWithCustomersPath(client: pg.ClientBase, text: string, searchPath: string): Promise<void> {
  try {
    await runStatement(client, text);
  } catch (error) {
    if (!isUndefined(error)) throw error;
    // If the second run fails too, the error of the first run is thrown.
    await runAgain(client, text, searchPath).catch(() => Promise.reject(error));
  }
}

/** Tells whether an error means that a name does not exist or is not on the search path. */
export const isUndefined = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && undefinedCodes.has(error.code ?? '');

/**
 * Sets `searchPath` in those functions of the session's role that have no search path of their own. The returned
 * function resets it in a session of that role.
 */
export async function lendCustomersPath(
  client: pg.ClientBase,
  searchPath: string,
): Promise<(client: pg.ClientBase) => Promise<void>> {
  const functions = functionSchema.parse((await client.query(functionsSql)).rows);
  const change = async (session: pg.ClientBase, what: string): Promise<void> => {
    for (const { kind, name: routine } of functions) await runStatement(session, `alter ${kind} ${routine} ${what}`);
  };
  await change(client, `set search_path = ${pathList(searchPath)}`);
  return (session) => change(session, 'reset search_path');
}

async function runAgain(client: pg.ClientBase, text: string, searchPath: string): Promise<void> {
  const functions = functionSchema.parse((await client.query(functionsSql)).rows);
  const path = pathList(searchPath);
  await client.query('begin');
  try {
    for (const { kind, name: routine } of functions)
      await runStatement(client, `alter ${kind} ${routine} set search_path = ${path}`);
    await runStatement(client, `set local search_path = ${path}`);
    await runStatement(client, text);
    await runStatement(client, "set local search_path = ''");
    for (const { kind, name: routine } of functions)
      await runStatement(client, `alter ${kind} ${routine} reset search_path`);
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

/**
 * Returns a search path as SQL, with each name quoted by itself. Quoted as a whole, the list would be a single name.
 */
export function pathList(value: string): string {
  const names = [...value.matchAll(/\s*(?:"((?:[^"]|"")*)"|([^",\s][^,]*?))\s*(?:,|$)/g)];
  const parts = names.map(([, quoted, plain]) =>
    quoted === undefined ? (plain ?? '').toLowerCase() : quoted.replaceAll('""', '"'),
  );
  return parts.length === 0 ? "''" : parts.map((part) => (part === '' ? "''" : name(part))).join(', ');
}
