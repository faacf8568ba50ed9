import pg from 'pg';
import { setRolePassword } from '../load/transfer-roles';

/** A service's own database and role. */
export interface ServiceDatabase {
  name: string;
  password: string;
}

/**
 * Creates for each service a role with its name (no superuser, and it may create nothing), and a database that this
 * role owns and nobody else may connect to. Runs at every start: what exists stays as it is, and the password is set to
 * the given one.
 */
export async function ensureServiceDatabases(adminUrl: string, databases: readonly ServiceDatabase[]): Promise<void> {
  const admin = new pg.Client({ connectionString: adminUrl });
  await admin.connect();
  try {
    // A service's role may connect only to its own database.
    for (const common of ['postgres', 'template1']) await admin.query(`REVOKE CONNECT, TEMPORARY ON DATABASE ${common} FROM PUBLIC`);
    for (const database of databases) await ensureServiceDatabase(admin, database);
  } finally {
    await admin.end();
  }
}

async function ensureServiceDatabase(admin: pg.Client, { name, password }: ServiceDatabase): Promise<void> {
  const identifier = admin.escapeIdentifier(name);
  const role = await admin.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [name]);
  if (role.rowCount === 0) await admin.query(`CREATE ROLE ${identifier} LOGIN`);
  await setRolePassword(admin, { verb: 'alter', role: name, options: 'login nosuperuser nocreatedb nocreaterole', password });
  const database = await admin.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
  if (database.rowCount === 0) await admin.query(`CREATE DATABASE ${identifier} OWNER ${identifier}`);
  await admin.query(`REVOKE ALL ON DATABASE ${identifier} FROM PUBLIC`);
}
