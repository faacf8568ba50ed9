import pg from 'pg';
import { z } from 'zod';
import { dropTransferRole, setRolePassword, type TransferLogin } from '../../session/transfer-roles';
import { readRows, type Stage } from '../session';
import { isOwnRoleSql } from './own-objects';

const name = pg.escapeIdentifier;
const nameSchema = z.object({ name: z.string() });

/** Reads the roles that own an object in the database, and the database's owner. */
const ownersSql = `select distinct r.rolname as name from pg_catalog.pg_roles r where not r.rolsuper
  and r.rolname !~ '^pg_' and not ${isOwnRoleSql} and (
  r.oid = (select datdba from pg_catalog.pg_database where datname = $1)
  or exists (select from pg_catalog.pg_shdepend d where d.refclassid = 'pg_catalog.pg_authid'::regclass
    and d.refobjid = r.oid and d.deptype = 'o'
    and d.dbid = (select oid from pg_catalog.pg_database where datname = $1))) order by 1`;

export async function readOwners(server: pg.ClientBase, databaseName: string): Promise<string[]> {
  return (await readRows(server, nameSchema, ownersSql, [databaseName])).map((row) => row.name);
}

async function ensureRole(server: pg.ClientBase, { role, password }: TransferLogin, options: string): Promise<void> {
  const there = await server.query('select from pg_catalog.pg_roles where rolname = $1', [role]);
  await setRolePassword(server, { verb: there.rowCount === 0 ? 'create' : 'alter', role, password, options });
}

const rights = 'login nosuperuser nocreatedb nocreaterole inherit';

/**
 * Grants rights on the database, and membership in the owners' roles. Each attempt repeats the grants, because the
 * database's owner can revoke them.
 */
async function grantAll(
  server: pg.ClientBase,
  role: string,
  databaseName: string,
  owners: readonly string[],
  databaseRights: string,
): Promise<void> {
  await server.query(`grant ${databaseRights} on database ${name(databaseName)} to ${name(role)}`);
  for (const owner of owners) await server.query(`grant ${name(owner)} to ${name(role)} with inherit true, set true`);
}

/**
 * Creates the move's roles on the old server. They may use reserved connections, because customers may use all others.
 */
export async function ensureOldRoles(stage: Stage, owners: readonly string[]): Promise<void> {
  const { publisher, replicator } = stage.own;
  const { databaseName } = stage.move;
  const server = await stage.server('old');
  await ensureRole(server, publisher, `${rights} noreplication nobypassrls`);
  await grantAll(server, publisher.role, databaseName, owners, 'connect, create');
  await ensureRole(server, replicator, `${rights} replication bypassrls`);
  await server.query(
    `grant pg_use_reserved_connections to ${name(publisher.role)}, ${name(replicator.role)} with inherit true,
      set false`,
  );
  await server.query(`grant pg_read_all_data to ${name(replicator.role)} with inherit true, set false`);
  await grantAll(server, replicator.role, databaseName, [], 'connect');
}

/** Creates the move's role on the target. The owners' roles must exist. */
export async function ensureTargetRoles(stage: Stage, owners: readonly string[]): Promise<void> {
  const { keeper } = stage.own;
  const server = await stage.server('target');
  await ensureRole(server, keeper, `${rights} noreplication nobypassrls`);
  await server.query(`grant pg_create_subscription to ${name(keeper.role)} with inherit true, set false`);
  await grantAll(server, keeper.role, stage.move.databaseName, owners, 'connect, create');
}

/**
 * Drops a role of the platform. A role on which an object of the customer depends stays, without a login and rights.
 */
export async function dropOwnRole(server: pg.ClientBase, { role }: TransferLogin): Promise<void> {
  const memberOf = `select g.rolname as name from pg_catalog.pg_auth_members m
    join pg_catalog.pg_roles g on g.oid = m.roleid
    join pg_catalog.pg_roles r on r.oid = m.member where r.rolname = $1`;
  for (const granted of await readRows(server, nameSchema, memberOf, [role]))
    await server.query(`revoke ${name(granted.name)} from ${name(role)}`);
  await dropTransferRole(server, role);
}
