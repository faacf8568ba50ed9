import { lockOut, openDatabase, openSession, readConnectionLimit, setRolePassword } from '@drydock/postgres';
import pg from 'pg';
import { z } from 'zod';

const name = pg.escapeIdentifier;
const sizeSchema = z.object({ bytes: z.coerce.number() });
const portsSchema = z.array(z.object({ port: z.int() }));

/** Runs `work` in the database `postgres` of an instance, as the platform's role. */
export async function withServer<T>(adminUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const { client, close } = await openSession(adminUrl, { purpose: 'admin' });
  try {
    return await work(client);
  } finally {
    await close();
  }
}

/**
 * Makes the customer's role and empty database. Everything that an interrupted attempt has left is removed first. The
 * role cannot enter another database. With `mayMakeRoles` it may make further roles, with no more rights than its own.
 */
export async function makeOwnDatabase(
  adminUrl: string,
  wanted: { databaseName: string; username: string; password: string; mayMakeRoles: boolean },
): Promise<void> {
  const { databaseName, username, password, mayMakeRoles } = wanted;
  await withServer(adminUrl, async (client) => {
    await client.query('set synchronous_commit = on');
    await client.query(`drop database if exists ${name(databaseName)} with (force)`);
    await client.query(`drop role if exists ${name(username)}`);
    const roles = mayMakeRoles ? 'createrole' : 'nocreaterole';
    const rights = `login nosuperuser nocreatedb noreplication nobypassrls ${roles}`;
    await setRolePassword(client, { verb: 'create', role: username, options: rights, password });
    // With this setting the customer has the rights of each role that it makes, and may switch to it.
    if (mayMakeRoles) await client.query(`alter role ${name(username)} set createrole_self_grant = 'set, inherit'`);
    for (const common of ['postgres', 'template1'])
      await client.query(`revoke connect, temporary on database ${name(common)} from public`);
    await client.query(
      `create database ${name(databaseName)} owner ${name(username)} template template0 encoding 'UTF8'`,
    );
    await client.query(`revoke connect, temporary on database ${name(databaseName)} from public`);
  });
}

/** The ports of the sessions that have logged in. Postgres lists no role for a session that is still logging in. */
export async function readKnownPorts(adminUrl: string): Promise<ReadonlySet<number>> {
  const sql =
    'select client_port as port from pg_catalog.pg_stat_activity where usesysid is not null and client_port > 0';
  const rows = await withServer(adminUrl, async (client) => (await client.query(sql)).rows);
  return new Set(portsSchema.parse(rows).map(({ port }) => port));
}

export async function endBackend(adminUrl: string, port: number): Promise<void> {
  const sql = 'select pg_catalog.pg_terminate_backend(pid) from pg_catalog.pg_stat_activity where client_port = $1';
  await withServer(adminUrl, (client) => client.query(sql, [port]));
}

/** The size on disk in bytes; null if the server does not answer. */
export async function readSize(adminUrl: string, databaseName: string): Promise<number | null> {
  try {
    return await withServer(adminUrl, async (client) => {
      const { rows } = await client.query('select pg_catalog.pg_database_size($1::text) as bytes', [databaseName]);
      return sizeSchema.parse(rows[0]).bytes;
    });
  } catch {
    return null;
  }
}

const readOnlySql = `select from pg_catalog.pg_db_role_setting
  where setdatabase = 0 and setrole = 0 and 'default_transaction_read_only=on' = any (setconfig)`;

export const isReadOnly = (adminUrl: string): Promise<boolean> =>
  withServer(adminUrl, async (client) => (await client.query(readOnlySql)).rowCount === 1);

/**
 * Makes new sessions read-only by default, or resets that default. It is a setting of the server for all roles, and not
 * of the customer's database or role, whose settings backups and upgrades copy. The platform's sessions override it.
 */
export const keepReadOnly = (adminUrl: string, isOn: boolean): Promise<void> =>
  withServer(adminUrl, async (client) => {
    const change = isOn ? 'set default_transaction_read_only = on' : 'reset default_transaction_read_only';
    await client.query(`alter role all ${change}`);
  });

const existsSql = 'select from pg_catalog.pg_database where datname = $1';

export interface Access {
  isOpen: boolean;
  /** The statements that let customers in again after a lock; empty if there is no lock. */
  opening: readonly string[];
  /** Roles of the platform that keep their rights while customers are locked out. */
  kept: readonly string[];
}

/** Lets customers in if `isOpen`, and otherwise keeps them out. Does nothing before the database was made. */
export async function applyAccess(
  adminUrl: string,
  databaseName: string,
  { isOpen, opening, kept }: Access,
): Promise<void> {
  await withServer(adminUrl, async (client) => {
    if ((await client.query(existsSql, [databaseName])).rowCount === 0) return;
    if (!isOpen) return lockOut(client, databaseName, kept);
    if (opening.length > 0) return openDatabase(client, opening);
    // Earlier versions of the agent locked customers out with a connection limit of 0.
    const { rowCount } = await client.query(`${existsSql} and datconnlimit = 0`, [databaseName]);
    if (rowCount === 1) await client.query(`alter database ${name(databaseName)} connection limit -1`);
  });
}

export const readLimit = (adminUrl: string, databaseName: string): Promise<number> =>
  withServer(adminUrl, (client) => readConnectionLimit(client, databaseName));

/**
 * Gives the database the connection limit that the customer had set before an upgrade or a restore. If the database has
 * a limit, that limit is kept, because the customer has set it since.
 */
export const restoreLimit = (adminUrl: string, databaseName: string, limit: number): Promise<void> =>
  withServer(adminUrl, async (client) => {
    if (limit < 0) return;
    const { rowCount } = await client.query(`${existsSql} and datconnlimit = -1`, [databaseName]);
    if (rowCount === 1)
      await client.query(`alter database ${name(databaseName)} connection limit ${Math.trunc(limit)}`);
  });
