import { openSession } from '@drydock/pg-transfer/session';
import { readConnectionLimit, sealDatabase, unsealDatabase } from '@drydock/pg-upgrade/seal';
import pg from 'pg';
import { z } from 'zod';

const name = pg.escapeIdentifier;
const sizeSchema = z.object({ bytes: z.coerce.number() });

/** Runs something in database `postgres` of an instance, by the platform's role. */
export async function withServer<T>(adminUrl: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const { client, close } = await openSession(adminUrl);
  try {
    return await work(client);
  } finally {
    await close();
  }
}

/**
 * The customer's role and empty database, from nothing or from what an interrupted attempt has left. The role may make further roles, none with more rights than
 * its own, and enters no other database.
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
    const rights = `login nosuperuser nocreatedb noreplication nobypassrls ${mayMakeRoles ? 'createrole' : 'nocreaterole'}`;
    await client.query(`create role ${name(username)} ${rights} password ${pg.escapeLiteral(password)}`);
    // A role that the customer makes is then of use to the customer at once.
    if (mayMakeRoles) await client.query(`alter role ${name(username)} set createrole_self_grant = 'set, inherit'`);
    for (const common of ['postgres', 'template1']) await client.query(`revoke connect, temporary on database ${name(common)} from public`);
    await client.query(`create database ${name(databaseName)} owner ${name(username)} template template0 encoding 'UTF8'`);
    await client.query(`revoke connect, temporary on database ${name(databaseName)} from public`);
  });
}

/** Roles that can do nothing, so that policies may mention them; those that are there stay. */
export async function makeMentionedRoles(adminUrl: string, roles: readonly string[]): Promise<void> {
  await withServer(adminUrl, async (client) => {
    for (const role of roles) {
      const { rowCount } = await client.query('select from pg_catalog.pg_roles where rolname = $1', [role]);
      if (rowCount === 0) await client.query(`create role ${name(role)} nologin`);
    }
  });
}

/** Bytes on disk; null when it does not answer. */
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

const existsSql = 'select from pg_catalog.pg_database where datname = $1';

/** Customers in or out, as the record says; nothing while the database has not been made yet. */
export async function settleAccess(
  adminUrl: string,
  databaseName: string,
  access: { isOpen: boolean; connectionLimit: number },
): Promise<void> {
  await withServer(adminUrl, async (client) => {
    if ((await client.query(existsSql, [databaseName])).rowCount === 0) return;
    if (!access.isOpen) return sealDatabase(client, databaseName);
    // One that the customer has set stays; only a seal of ours is lifted.
    const { rowCount } = await client.query(`${existsSql} and datconnlimit = 0`, [databaseName]);
    if (rowCount === 1) await unsealDatabase(client, databaseName, access.connectionLimit);
  });
}

export const readLimit = (adminUrl: string, databaseName: string): Promise<number> =>
  withServer(adminUrl, (client) => readConnectionLimit(client, databaseName));
