import { createHash, createHmac, pbkdf2Sync, randomBytes } from 'node:crypto';
import pg from 'pg';
import { z } from 'zod';

const iterations = 4096;
const name = pg.escapeIdentifier;

/** A login of ours to one database of a customer's. */
export interface TransferLogin {
  role: string;
  password: string;
}

/** Names of the roles that this module creates. No customer may get such a name. */
export const transferRolePattern = /^(?:rd|ld|pb|rp|sb)_[0-9a-f]{24}$/;

/**
 * The verifier by which a server checks a password; nobody can log in with it. Only for ASCII passwords, which need no
 * SASLprep.
 */
export function scramVerifier(password: string, salt: Buffer = randomBytes(16)): string {
  const salted = pbkdf2Sync(password, salt, iterations, 32, 'sha256');
  const hmac = (text: string): Buffer => createHmac('sha256', salted).update(text).digest();
  const storedKey = createHash('sha256').update(hmac('Client Key')).digest('base64');
  return `SCRAM-SHA-256$${iterations}:${salt.toString('base64')}$${storedKey}:${hmac('Server Key').toString('base64')}`;
}

/** No statement's text contains the verifier. It is a parameter, and only the server puts it into the command. */
const withSecret = (command: string): string => `do $body$ begin
  execute pg_catalog.format(${pg.escapeLiteral(command)},
    pg_catalog.current_setting('drydock.role_name'), pg_catalog.current_setting('drydock.role_secret'));
exception when others then
  raise exception using errcode = sqlstate, message = pg_catalog.format(
    'the role %I was refused (%s)', pg_catalog.current_setting('drydock.role_name'), sqlstate);
end $body$`;

/**
 * A superuser's session keeps the parameter also out of the server's log, however much that is configured to contain.
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
  /** Our own words, never a customer's. */
  options?: string;
  /** The password in clear, or its verifier. */
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
 * Runs CREATE ROLE or ALTER ROLE with a password. No statement's text, error, span or line of the server's log contains
 * the password. Needs a client of its own that is not in a transaction.
 */
export function setRolePassword(admin: pg.ClientBase, change: PasswordChange): Promise<void> {
  return inTransaction(admin, () => changePassword(admin, change));
}

const rights = 'login nosuperuser nocreatedb nocreaterole noreplication';

/** `admin` is a session in the database `postgres`. `tag` says whose role it is, so that it can be swept. */
interface NewRole {
  admin: pg.ClientBase;
  database: string;
  tag: string;
}

/** The name is random, and CREATE fails when it is taken. So nobody can have prepared a role with that name. */
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
 * Creates a role that reads everything in one database, with or without row security, and changes nothing. It can read
 * every other database to which it may connect, so CONNECT is revoked from PUBLIC on each of them. It can also read all
 * verifiers of the cluster, so its password stays with the host. It may use reserved connections: when a customer fills
 * the others, a backup still works.
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
 * Creates a role that acts as `owner` and as nobody else: it logs in with the startup option `role=owner`. When a
 * customer's code runs RESET ROLE, it becomes a role that owns nothing. Such code can change the role's own password,
 * so a loader is dropped after its load.
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
 * Postgres refuses rights on a database that change in two sessions at once ("tuple concurrently updated"), so one
 * session waits for the other.
 */
async function changeRights(admin: pg.ClientBase, database: string, statement: string): Promise<void> {
  const key = pg.escapeLiteral(`rights on ${database}`);
  await admin.query(`select pg_catalog.pg_advisory_xact_lock(pg_catalog.hashtextextended(${key}, 0)); ${statement}`);
}

/** Gives a role CONNECT. Call it before each use, because the database's owner can revoke it. */
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
/** The error code when something depends on the role. */
const dependentsCode = '2BP01';

/**
 * Ends the role's sessions, takes its rights on databases, and drops it. A role stays when something depends on it:
 * what a customer's code has created as this role, or a right that another customer has given to it. It can then no
 * longer log in, and goes when this is called again after the database in question is gone. Resolves with whether it
 * is gone.
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

/** As {@link dropLogin}. Throws if the role is no transfer role, whose name no customer chooses. */
export async function dropTransferRole(admin: pg.ClientBase, role: string): Promise<boolean> {
  if (!transferRolePattern.test(role)) throw new Error(`${role} is no transfer role`);
  return dropLogin(admin, role);
}

/**
 * Only a superuser can comment on a role that has no administrator. A customer's role with such a name has its creator
 * as administrator.
 */
const taggedSql = `select r.rolname as name from pg_catalog.pg_roles r where r.rolname ~ $1
  and pg_catalog.shobj_description(r.oid, 'pg_authid') = $2
  and not exists (select from pg_catalog.pg_auth_members m where m.roleid = r.oid)`;

/** Drops the roles of `tag` that were left, except those in `kept`. */
export async function sweepTransferRoles(
  admin: pg.ClientBase,
  tag: string,
  kept: ReadonlySet<string> = new Set(),
): Promise<void> {
  const { rows } = await admin.query(taggedSql, [transferRolePattern.source, tag]);
  for (const found of namesSchema.parse(rows)) if (!kept.has(found.name)) await dropTransferRole(admin, found.name);
}

/** The URL of a login to a database on the server of `serverUrl`. */
export function loginUrl(serverUrl: string, { role, password }: TransferLogin, database: string): string {
  const url = new URL(serverUrl);
  url.username = encodeURIComponent(role);
  url.password = encodeURIComponent(password);
  url.pathname = `/${encodeURIComponent(database)}`;
  return url.href;
}
