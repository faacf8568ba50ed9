import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import pg from 'pg';
import { z } from 'zod';

const iterations = 4096;
const name = pg.escapeIdentifier;

/** A login of the platform to a customer's database. */
export interface TransferLogin {
  role: string;
  password: string;
}

/** Matches the names of the roles that dumps, loads and upgrades create. */
export const transferRolePattern = /^(?:rd|ld|pb|rp|sb)_[0-9a-f]{24}$/;

/**
 * Returns the verifier with which a server checks a password. Nobody can log in with the verifier. The password must be
 * ASCII, because no SASLprep is applied.
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(16)): string {
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const hmac = (text: string): Buffer => createHmac('sha256', salted).update(text).digest();
  const storedKey = createHash('sha256').update(hmac('Client Key')).digest('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${hmac('Server Key').toString('base64')}`;
}

/**
 * Returns SQL in which the verifier is a parameter. Only the server inserts it into the command, so that no statement's
 * text contains it.
 */
const withSecret = (command: string): string => `do $body$ begin
  execute pg_catalog.format(${pg.escapeLiteral(command)},
    pg_catalog.current_setting('drydock.role_name'), pg_catalog.current_setting('drydock.role_secret'));
exception when others then
  raise exception using errcode = sqlstate, message = pg_catalog.format(
    'the role %I was refused (%s)', pg_catalog.current_setting('drydock.role_name'), sqlstate);
end $body$`;

/**
 * Turns off the logging of parameters in a superuser's session, so that the server's log never contains the verifier.
 */
const quietSql = `select pg_catalog.set_config(setting, value, true)
  from (values ('log_statement', 'none'), ('log_min_duration_statement', '-1'),
    ('log_parameter_max_length', '0')) as quiet (setting, value)
  where (select r.rolsuper from pg_catalog.pg_roles r where r.rolname = current_user)`;
const setSecretSql = `select pg_catalog.set_config('drydock.role_name', $1, true),
    pg_catalog.set_config('drydock.role_secret', $2, true)`;

async function inTransaction(client: pg.ClientBase, work: () => Promise<void>): Promise<void> {
  await client.query('begin');
  try {
    await work();
    await client.query('commit');
  } catch (error) {
    await client.query('rollback').catch(() => undefined);
    throw error;
  }
}

interface PasswordChange {
  verb: 'create' | 'alter';
  role: string;
  /** Fixed text that no customer has written. */
  options?: string;
  /** The password or its verifier. */
  password: string;
}

async function changePassword(
  admin: pg.ClientBase,
  { verb, role, options = '', password }: PasswordChange,
): Promise<void> {
  const verifier = /^(?:SCRAM-SHA-256\$|md5[0-9a-f]{32}$)/.test(password) ? password : scramVerifier(password);
  await admin.query(quietSql);
  await admin.query(setSecretSql, [role, verifier]);
  await admin.query(withSecret(`${verb} role %I ${options.replaceAll('%', '%%')} password %L`));
}

/**
 * Runs CREATE ROLE or ALTER ROLE with a password. The password is in no statement's text, error, span or log. The
 * client must not be in a transaction.
 */
export function setRolePassword(admin: pg.ClientBase, change: PasswordChange): Promise<void> {
  return inTransaction(admin, () => changePassword(admin, change));
}

const rights = 'login nosuperuser nocreatedb nocreaterole noreplication';

/**
 * `admin` is a session in the database `postgres`. `tag` names the work that uses the role, so that leftover roles can
 * be found.
 */
interface NewRole {
  admin: pg.ClientBase;
  database: string;
  tag: string;
}

/** Creates a login with a random name. CREATE fails for an existing name, so nobody can prepare the role beforehand. */
async function makeLogin(
  prefix: 'rd' | 'ld',
  options: string,
  request: NewRole,
  grant: (role: string) => string,
): Promise<TransferLogin> {
  const { admin, database, tag } = request;
  const login = { role: `${prefix}_${randomBytes(12).toString('hex')}`, password: randomBytes(24).toString('hex') };
  await inTransaction(admin, async () => {
    await changePassword(admin, { verb: 'create', ...login, options: `${rights} ${options}` });
    await admin.query(`comment on role ${name(login.role)} is ${pg.escapeLiteral(tag)}`);
    await grantConnect(admin, login.role, database);
    await admin.query(grant(name(login.role)));
  });
  return login;
}

/**
 * Creates a role that can read everything in a database, despite row security, and change nothing. The role could read
 * every database of the cluster, so the platform revokes CONNECT on all of them from PUBLIC. The role can also read the
 * password hashes of all roles of the cluster, so its own password never leaves the host. It may use reserved
 * connections, so that a backup works when customers use all others.
 */
export function makeReader(request: NewRole): Promise<TransferLogin> {
  return makeLogin(
    'rd',
    'inherit bypassrls connection limit 16',
    request,
    (role) => `grant pg_read_all_data, pg_use_reserved_connections to ${role} with inherit true, set false`,
  );
}

/**
 * Creates a role that can act only as `owner`, with the startup option `role=owner`. After SET ROLE NONE, a customer's
 * code acts as the loader itself, which owns nothing. That code could change the loader's password, so a loader is
 * dropped after its load.
 */
export function makeLoader(request: NewRole & { owner: string }): Promise<TransferLogin> {
  return makeLogin(
    'ld',
    'inherit nobypassrls connection limit 16',
    request,
    (role) => `grant ${name(request.owner)} to ${role} with inherit true, set true`,
  );
}

/**
 * Changes rights on a database. Only one session at a time changes them, because Postgres refuses concurrent changes
 * ("tuple concurrently updated").
 */
async function changeRights(admin: pg.ClientBase, database: string, statement: string): Promise<void> {
  const key = pg.escapeLiteral(`rights on ${database}`);
  await admin.query(`select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(${key}, 0)); ${statement}`);
}

/**
 * Grants CONNECT. A caller that keeps its login repeats the grant before each use, because the database's owner can
 * revoke it.
 */
export function grantConnect(admin: pg.ClientBase, role: string, database: string): Promise<void> {
  return changeRights(admin, database, `grant connect on database ${name(database)} to ${name(role)}`);
}

const endSessionsSql = `select pg_catalog.pg_terminate_backend(pid, 5000) from pg_catalog.pg_stat_activity
  where usename = $1 and pid <> pg_catalog.pg_backend_pid()`;
const grantedSql = `select datname as name from pg_catalog.pg_database d
  where exists (select from pg_catalog.aclexplode(d.datacl) a
  join pg_catalog.pg_roles r on r.oid = a.grantee where r.rolname = $1)`;
const existsSql = 'select rolname as name from pg_catalog.pg_roles where rolname = $1';
const namesSchema = z.array(z.object({ name: z.string() }));
/** The SQLSTATE for a role on which objects depend. */
const dependentsCode = '2BP01';

/**
 * Ends a role's sessions, revokes its rights and drops it. The role stays, without its login, if something depends on
 * it: an object that a customer's code created, or a right that a customer granted. Another call drops the role after
 * the database of that dependency was dropped. Returns whether the role is gone.
 */
export async function dropLogin(admin: pg.ClientBase, role: string): Promise<boolean> {
  if ((await admin.query(existsSql, [role])).rowCount === 0) return true;
  await admin.query(`alter role ${name(role)} nologin`);
  await admin.query(endSessionsSql, [role]);
  for (const granted of namesSchema.parse((await admin.query(grantedSql, [role])).rows)) {
    await changeRights(admin, granted.name, `revoke all on database ${name(granted.name)} from ${name(role)}`);
  }
  try {
    await admin.query(`drop role ${name(role)}`);
    return true;
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === dependentsCode) return false;
    throw error;
  }
}

/** Works like {@link dropLogin}. Throws unless {@link transferRolePattern} matches the name. */
export async function dropTransferRole(admin: pg.ClientBase, role: string): Promise<boolean> {
  if (!transferRolePattern.test(role)) throw new Error(`${role} is no transfer role`);
  return dropLogin(admin, role);
}

/**
 * Selects the platform's roles with a tag as their comment. Only a superuser can comment on a role without an
 * administrator. A customer's role has its creator as administrator, so it is never selected.
 */
const taggedSql = `select r.rolname as name from pg_catalog.pg_roles r where r.rolname ~ $1
  and pg_catalog.shobj_description(r.oid, 'pg_authid') = $2
  and not exists (select from pg_catalog.pg_auth_members m where m.roleid = r.oid)`;

/** Drops leftover roles of `tag`, except those in `kept`. */
export async function sweepTransferRoles(
  admin: pg.ClientBase,
  tag: string,
  kept: ReadonlySet<string> = new Set(),
): Promise<void> {
  const { rows } = await admin.query(taggedSql, [transferRolePattern.source, tag]);
  for (const found of namesSchema.parse(rows)) if (!kept.has(found.name)) await dropTransferRole(admin, found.name);
}

export function loginUrl(serverUrl: string, { role, password }: TransferLogin, database: string): string {
  const url = new URL(serverUrl);
  url.username = encodeURIComponent(role);
  url.password = encodeURIComponent(password);
  url.pathname = `/${encodeURIComponent(database)}`;
  return url.href;
}
