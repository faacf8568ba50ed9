import type pg from 'pg';
import { z } from 'zod';
import { TransferError } from '../session/transfer-error';

const powersSql = `select r.rolsuper or r.rolcreaterole or r.rolreplication or r.rolbypassrls
  or exists (select from pg_catalog.pg_roles p
    where p.rolname in ('pg_execute_server_program', 'pg_write_server_files', 'pg_read_server_files')
    and pg_catalog.pg_has_role(r.oid, p.oid, 'member')) as powerful
  from pg_catalog.pg_roles r where r.rolname in (current_user, session_user) order by 1 desc limit 1`;
const contentsSql = `select exists (select from pg_catalog.pg_class c
    join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema')
  or exists (select from pg_catalog.pg_proc p join pg_catalog.pg_namespace n on n.oid = p.pronamespace
    where n.nspname !~ '^pg_' and n.nspname <> 'information_schema')
  or exists (select from pg_catalog.pg_largeobject_metadata) as filled`;
const untrustedSql = `select name from pg_catalog.unnest($1::text[]) as wanted (name) where not exists
  (select from pg_catalog.pg_available_extension_versions v where v.name = wanted.name and v.trusted)`;

/**
 * Checks the loading role and the target. A dump is a customer's code, so it runs only as a role that cannot do harm,
 * even if a dangerous statement passed the checks. Throws `loader_too_powerful` or `database_not_empty`.
 */
export async function checkTarget(client: pg.ClientBase): Promise<void> {
  const { powerful } = z.object({ powerful: z.boolean() }).parse((await client.query(powersSql)).rows[0]);
  if (powerful)
    throw new TransferError(
      'loader_too_powerful',
      'a dump is never loaded by a superuser or a role with rights beyond its database',
    );
  const { filled } = z.object({ filled: z.boolean() }).parse((await client.query(contentsSql)).rows[0]);
  if (filled) throw new TransferError('database_not_empty', 'the target database holds something already');
}

/** Throws `extension_untrusted` unless an owner may install all these extensions on the server. */
export async function checkExtensions(client: pg.ClientBase, names: string[]): Promise<void> {
  const { rows } = await client.query(untrustedSql, [names]);
  const refused = z.array(z.object({ name: z.string() })).parse(rows);
  const [first] = refused;
  if (first === undefined) return;
  const reason = `not trusted by the server: ${refused.map((row) => row.name).join(', ')}`;
  throw new TransferError('extension_untrusted', reason, { object: `extension ${first.name}` });
}
