import { createHash } from 'node:crypto';
import pg from 'pg';
import { setRolePassword } from '../load/transfer-roles';
import { isLoginRefused } from './superuser';

/** A service's own database, the role of that name that owns it, and the passwords that open it. */
export interface ServiceDatabase {
  name: string;
  /** Two while they are rotated. Each belongs to a login of its own, since Postgres keeps one password of a role. */
  passwords: readonly string[];
}

/** What tells the login of one password from that of another: 32 bits of its hash. */
export const fingerprintOf = (password: string): string => createHash('sha256').update(password).digest('hex').slice(0, 8);

/** The role that a service logs in as with this password. */
export const loginOf = (name: string, password: string): string => `${name}_${fingerprintOf(password)}`;

/**
 * Makes, for each, a role of that name (no superuser, may create nothing) and a database that it owns and nobody else may enter. For each
 * password there is a login whose sessions work as that role, so that what one of them makes belongs to all. Run at every start: what is
 * there is left as it is, but a login whose password is no longer given goes, and its sessions end.
 */
export async function ensureServiceDatabases(adminUrl: string, databases: readonly ServiceDatabase[]): Promise<void> {
  const admin = new pg.Client({ connectionString: adminUrl });
  await admin.connect();
  try {
    // A service's role enters its own database and no other.
    for (const common of ['postgres', 'template1']) await admin.query(`REVOKE CONNECT, TEMPORARY ON DATABASE ${common} FROM PUBLIC`);
    for (const database of databases) {
      await ensureServiceDatabase(admin, database);
      await removeOtherLogins(admin, adminUrl, database);
    }
  } finally {
    await admin.end();
  }
}

const quote = pg.escapeIdentifier;

async function ensureRole(admin: pg.Client, name: string): Promise<void> {
  const role = await admin.query('SELECT 1 FROM pg_roles WHERE rolname = $1', [name]);
  if (role.rowCount === 0) await admin.query(`CREATE ROLE ${quote(name)}`);
}

async function ensureServiceDatabase(admin: pg.Client, { name, passwords }: ServiceDatabase): Promise<void> {
  await ensureRole(admin, name);
  await admin.query(`ALTER ROLE ${quote(name)} NOSUPERUSER NOCREATEDB NOCREATEROLE`);
  for (const password of passwords) {
    const login = loginOf(name, password);
    await ensureRole(admin, login);
    await setRolePassword(admin, { verb: 'alter', role: login, options: 'login nosuperuser nocreatedb nocreaterole', password });
    await admin.query(`GRANT ${quote(name)} TO ${quote(login)}`);
    await admin.query(`ALTER ROLE ${quote(login)} SET role = ${pg.escapeLiteral(name)}`);
  }
  const database = await admin.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
  if (database.rowCount === 0) await admin.query(`CREATE DATABASE ${quote(name)} OWNER ${quote(name)}`);
  await admin.query(`REVOKE ALL ON DATABASE ${quote(name)} FROM PUBLIC`);
}

async function removeOtherLogins(admin: pg.Client, adminUrl: string, { name, passwords }: ServiceDatabase): Promise<void> {
  const members = `SELECT m.rolname AS login FROM pg_auth_members JOIN pg_roles m ON m.oid = member JOIN pg_roles o ON o.oid = roleid WHERE o.rolname = $1`;
  const { rows } = await admin.query<{ login: string }>(members, [name]);
  const wanted = new Set(passwords.map((password) => loginOf(name, password)));
  const isLogin = (login: string): boolean => login.startsWith(`${name}_`) && /^_[0-9a-f]{8}$/.test(login.slice(name.length));
  for (const { login } of rows.filter((each) => isLogin(each.login) && !wanted.has(each.login))) {
    await admin.query(`ALTER ROLE ${quote(login)} NOLOGIN`);
    await endSessions(admin, login);
    await admin.query(`DROP ROLE ${quote(login)}`);
  }
  if (!(await isOwnersLoginOver(admin, adminUrl, { name, passwords }))) return;
  await admin.query(`ALTER ROLE ${quote(name)} NOLOGIN PASSWORD NULL`);
  await endSessions(admin, name);
}

/** An earlier release logged in as the owner itself, which it may until its password is rotated away. */
async function isOwnersLoginOver(admin: pg.Client, adminUrl: string, { name, passwords }: ServiceDatabase): Promise<boolean> {
  const owner = await admin.query('SELECT 1 FROM pg_roles WHERE rolname = $1 AND rolcanlogin', [name]);
  if (owner.rowCount === 0) return false;
  for (const password of passwords) {
    const url = Object.assign(new URL(adminUrl), { username: name, password: encodeURIComponent(password), pathname: `/${name}` });
    const session = new pg.Client({ connectionString: url.href });
    try {
      await session.connect();
      return false;
    } catch (error) {
      if (!isLoginRefused(error)) throw error;
    } finally {
      await session.end();
    }
  }
  return true;
}

const endSessions = (admin: pg.Client, login: string): Promise<unknown> =>
  admin.query('SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE usename = $1', [login]);
