import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import path from 'node:path';
import { promisify } from 'node:util';
import pg from 'pg';
import { ScramClient } from '../session/scram-client';
import { bySocket } from '../session/session';
import { setRolePassword } from '../session/transfer-roles';

/** A service's database, the owner role of the same name, and the owner's passwords. */
export interface ServiceDatabase {
  name: string;
  /**
   * Two passwords during a rotation, otherwise one. Each has its own login, because a role has only one password in
   * Postgres.
   */
  passwords: readonly string[];
}

/** Returns 32 bits of a password's hash. They distinguish the logins of different passwords. */
export const fingerprintOf = (password: string): string =>
  createHash('sha256').update(password).digest('hex').slice(0, 8);

/** Returns the role with which a service logs in with this password. */
export const loginOf = (name: string, password: string): string => `${name}_${fingerprintOf(password)}`;

/**
 * Creates, for each service, a role without rights to create roles or databases, and a database of that role to which
 * nobody else may connect. Each password has a login that acts as that role, so that the role owns all objects. The
 * call is repeated at every start and keeps what exists. A login whose password is no longer given is dropped with its
 * sessions.
 */
export async function ensureServiceDatabases(adminUrl: string, databases: readonly ServiceDatabase[]): Promise<void> {
  const admin = new pg.Client({ connectionString: adminUrl });
  await admin.connect();
  try {
    // A service's role may connect only to its own database.
    for (const common of ['postgres', 'template1'])
      await admin.query(`REVOKE CONNECT, TEMPORARY ON DATABASE ${common} FROM PUBLIC`);
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
    await setRolePassword(admin, {
      verb: 'alter',
      role: login,
      options: 'login nosuperuser nocreatedb nocreaterole',
      password,
    });
    await admin.query(`GRANT ${quote(name)} TO ${quote(login)}`);
    await admin.query(`ALTER ROLE ${quote(login)} SET role = ${pg.escapeLiteral(name)}`);
  }
  const database = await admin.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
  if (database.rowCount === 0) await admin.query(`CREATE DATABASE ${quote(name)} OWNER ${quote(name)}`);
  await admin.query(`REVOKE ALL ON DATABASE ${quote(name)} FROM PUBLIC`);
}

async function removeOtherLogins(
  admin: pg.Client,
  adminUrl: string,
  { name, passwords }: ServiceDatabase,
): Promise<void> {
  const members = `SELECT m.rolname AS login FROM pg_auth_members JOIN pg_roles m ON m.oid = member
    JOIN pg_roles o ON o.oid = roleid WHERE o.rolname = $1`;
  const { rows } = await admin.query<{ login: string }>(members, [name]);
  const wanted = new Set(passwords.map((password) => loginOf(name, password)));
  const isLogin = (login: string): boolean =>
    login.startsWith(`${name}_`) && /^_[0-9a-f]{8}$/.test(login.slice(name.length));
  for (const { login } of rows.filter((each) => isLogin(each.login) && !wanted.has(each.login))) {
    await admin.query(`ALTER ROLE ${quote(login)} NOLOGIN`);
    await endSessions(admin, login);
    await admin.query(`DROP ROLE ${quote(login)}`);
  }
  if (!(await isOwnersLoginOver(admin, adminUrl, { name, passwords }))) return;
  await admin.query(`ALTER ROLE ${quote(name)} NOLOGIN PASSWORD NULL`);
  await endSessions(admin, name);
}

/**
 * Tells whether the owner can log in but none of the passwords is its own, so that its login must end. The owner can
 * log in only where an older version of Drydock created the database. The processes of that version may still use the
 * owner until the password is rotated.
 */
async function isOwnersLoginOver(
  admin: pg.Client,
  adminUrl: string,
  { name, passwords }: ServiceDatabase,
): Promise<boolean> {
  const owner = await admin.query('SELECT 1 FROM pg_roles WHERE rolname = $1 AND rolcanlogin', [name]);
  if (owner.rowCount === 0) return false;
  for (const password of passwords) {
    const url = Object.assign(new URL(adminUrl), {
      username: name,
      password: encodeURIComponent(password),
      pathname: `/${name}`,
    });
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

/** Tells whether Postgres refused a login: the password is wrong, or the role may not log in (SQLSTATE class 28). */
export const isLoginRefused = (error: unknown): boolean =>
  error instanceof pg.DatabaseError && error.code?.startsWith('28') === true;

/**
 * Returns a superuser's URL with one password. During a rotation `adminUrl` has two passwords, separated by a comma, of
 * which the server accepts only one. So both are tried, and the first becomes the superuser's password. A comma within
 * a password is written %2C. A single password is not tried. `socketFolder` selects a Unix socket.
 * @throws if the server accepts none of several passwords
 */
export async function settleSuperuser(adminUrl: string, socketFolder: string | null = null): Promise<string> {
  const urls = new URL(adminUrl).password
    .split(',')
    .map((password) => Object.assign(new URL(adminUrl), { password }).href);
  const [current = adminUrl] = urls;
  if (urls.length === 1) return current;
  for (const [at, url] of urls.entries()) {
    const admin = new ScramClient({ connectionString: socketFolder === null ? url : bySocket(url, socketFolder) });
    try {
      await admin.connect();
      if (at === 0) return current;
      const { username, password } = new URL(current);
      await setRolePassword(admin, {
        verb: 'alter',
        role: decodeURIComponent(username),
        password: decodeURIComponent(password),
      });
      return current;
    } catch (error) {
      if (!isLoginRefused(error) || at === urls.length - 1) throw error;
    } finally {
      await admin.end();
    }
  }
  return current;
}

const run = promisify(execFile);

/**
 * Applies a service's migrations in a process of its own. Returns the names of the applied migrations.
 * @throws with the engine's message
 */
export async function runMigrations(serviceDir: string, databaseUrl: string): Promise<string[]> {
  const output: unknown = JSON.parse(await runCli(['deploy', serviceDir], databaseUrl));
  return Array.isArray(output) ? output.map(String) : [];
}

/**
 * Returns the SQL that leads from a service's migrations to its schema files, or null if they agree. The engine runs in
 * a process of its own. The role of `adminUrl` must be allowed to create databases.
 * @throws with the engine's message
 */
export async function readPendingSql(serviceDir: string, adminUrl: string): Promise<string | null> {
  const output: unknown = JSON.parse(await runCli(['pending', serviceDir], adminUrl));
  return typeof output === 'string' ? output : null;
}

/**
 * Runs the compiled cli.js and returns its output. The path leads to the build output, because under jest this module
 * runs from its source, which has no cli.js.
 */
async function runCli(args: readonly string[], databaseUrl: string): Promise<string> {
  const cli = path.resolve(__dirname, '../../dist/migrate/cli.js');
  try {
    const { stdout } = await run(process.execPath, [cli, ...args], {
      env: { PATH: process.env['PATH'], DATABASE_URL: databaseUrl },
    });
    return stdout;
  } catch (error) {
    const said = error instanceof Error && 'stderr' in error ? String(error.stderr).trim() : String(error);
    throw new Error(`Migrations (${args.join(' ')}) failed: ${said}`, { cause: error });
  }
}
