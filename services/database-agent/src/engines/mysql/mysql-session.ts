import { setTimeout as wait } from 'node:timers/promises';
import { DatabaseHostError } from '@drydock/agent/database';
import { flavourOf, type Major, programsOf } from '@drydock/contracts/databases/major';
import { findEngine, listEngines, nativeVerifier, type Engine as Programs } from '@drydock/mysql';
import mysql from 'mysql2/promise';
import { z } from 'zod';
import type { Access, Owner } from '../engine';

export const quoteName = (name: string): string => mysql.escapeId(name, true);
export const quoteText = (text: string): string => mysql.escape(text);

const connectMs = 10_000;

interface MysqlSession {
  run(statement: string): Promise<void>;
  read<Row>(row: z.ZodType<Row>, statement: string): Promise<Row[]>;
  close(): Promise<void>;
}

/** Opens a session of the administrator. The URL names a Unix socket. */
export async function openMysql(adminUrl: string): Promise<MysqlSession> {
  const connection = await mysql.createConnection({ ...loginOf(adminUrl), connectTimeout: connectMs });
  connection.on('error', () => undefined);
  // Nothing that this session changes is replicated. Otherwise the lock of the customer's account on the old instance
  // would also lock the account on the new one.
  await connection.query('set session sql_log_bin = 0');
  return {
    run: async (statement) => void (await connection.query(statement)),
    read: async (row, statement) => {
      const [rows] = await connection.query(statement);
      return z.array(row).parse(rows);
    },
    close: async () => connection.destroy(),
  };
}

export async function withMysql<T>(adminUrl: string, work: (session: MysqlSession) => Promise<T>): Promise<T> {
  const session = await openMysql(adminUrl);
  try {
    return await work(session);
  } finally {
    await session.close();
  }
}

export interface MysqlLogin {
  socketPath: string;
  user: string;
  password: string;
}

export function loginOf(adminUrl: string): MysqlLogin {
  const { searchParams, username, password } = new URL(adminUrl);
  return {
    socketPath: searchParams.get('socketPath') ?? '',
    user: decodeURIComponent(username),
    password: decodeURIComponent(password),
  };
}

/** The URL of a login, in the form that {@link openMysql} takes. */
export const mysqlUrl = ({ socketPath, user, password }: MysqlLogin): string =>
  `mysql://${encodeURIComponent(user)}:${encodeURIComponent(password)}@localhost/` +
  `?socketPath=${encodeURIComponent(socketPath)}`;

export const installedMysqlMajors = async (): Promise<Major[]> => (await listEngines()).map(({ version }) => version);

/** The programs of a major. Throws `major_not_installed`. */
export async function findPrograms(major: Major): Promise<Programs> {
  const flavour = flavourOf(major);
  if (flavour === 'postgres') throw new Error(`${major} is no major of MySQL's`);
  try {
    return await findEngine(flavour, String(major));
  } catch (error) {
    throw new DatabaseHostError('major_not_installed', `the programs of ${programsOf(major)} are not installed here`, {
      cause: error,
    });
  }
}

/** The customer's account, valid from every host: the server sees only the endpoint's address. */
export const customerOf = (username: string): string => `${quoteText(username)}@'%'`;

/** Escapes the database's name for a grant, in which `_` and `%` are wildcards. */
const escapeWildcards = (databaseName: string): string => databaseName.replaceAll(/[_%]/g, String.raw`\$&`);
const onlyDatabase = (databaseName: string): string => quoteName(escapeWildcards(databaseName));

const versionSchema = z.object({ version: z.string() });
const isMariadb = async (server: MysqlSession): Promise<boolean> => {
  const [found] = await server.read(versionSchema, 'select version() as version');
  return /mariadb/i.test(found?.version ?? '');
};

/**
 * The clause that sets a password. For MariaDB it contains a hash, which this process computes. MySQL salts its hash
 * itself, so for MySQL the clause contains the password.
 */
async function identified(server: MysqlSession, password: string): Promise<string> {
  if (!(await isMariadb(server))) return `identified with caching_sha2_password by ${quoteText(password)}`;
  return `identified via mysql_native_password using '${nativeVerifier(password)}'`;
}

/**
 * Makes the customer's user and empty database. The user has every right on that database and no other right. It cannot
 * make users or databases, because those rights would also reach the platform's accounts.
 */
export async function makeMysqlDatabase(
  adminUrl: string,
  { databaseName, username, password, sessionsMax }: Owner & { password: string; sessionsMax: number },
): Promise<void> {
  await withMysql(adminUrl, async (server) => {
    await server.run(`drop user if exists ${customerOf(username)}`);
    await server.run(`drop database if exists ${quoteName(databaseName)}`);
    await server.run(`create database ${quoteName(databaseName)} character set utf8mb4`);
    const limit = `require ssl with max_user_connections ${sessionsMax}`;
    await server.run(`create user ${customerOf(username)} ${await identified(server, password)} ${limit}`);
    await server.run(grantAll({ databaseName, username }));
  });
}

/**
 * Gives the owner every right on its database. Some rights may be missing, because a database above the limit of its
 * disk space was dumped or upgraded.
 */
export const giveAllRights = (server: MysqlSession, owner: Owner): Promise<void> => server.run(grantAll(owner));

const grantAll = ({ databaseName, username }: Owner): string =>
  `grant all privileges on ${onlyDatabase(databaseName)}.* to ${customerOf(username)}`;

/** The rights with which an account can take more space. Without them, rows can still be deleted and tables dropped. */
const fillingRights =
  'insert, update, create, alter, index, references, create temporary tables, create view, create routine, trigger';
const countSchema = z.object({ n: z.coerce.number() });
const limitSchema = z.object({ rightsTaken: z.coerce.boolean(), eventsOff: z.coerce.boolean() });

/**
 * Whether the limit of {@link keepMysqlReadOnly} is in force; null if only a part of it is. The parts can differ for
 * two reasons: a dump that was taken above the limit brings the reduced rights with it, and the agent turns events on
 * or off whenever it lets the customer in or keeps the customer out.
 */
export async function isMysqlReadOnly(adminUrl: string, owner: Owner): Promise<boolean | null> {
  const { rightsTaken, eventsOff } = await withMysql(adminUrl, (server) => readLimit(server, owner));
  return rightsTaken === eventsOff ? rightsTaken : null;
}

async function readLimit(
  server: MysqlSession,
  { databaseName, username }: Owner,
): Promise<z.infer<typeof limitSchema>> {
  const sql = `select exists (select 1 from mysql.db where user = ${quoteText(username)} and host = '%'
    and db = ${quoteText(escapeWildcards(databaseName))} and insert_priv = 'N') as rightsTaken,
    @@global.event_scheduler = 'OFF' as eventsOff`;
  const [limit] = await server.read(limitSchema, sql);
  if (limit === undefined) throw new Error('the server did not say whether the limit is in force');
  return limit;
}

/**
 * Takes the rights to fill the database from the customer and stops the customer's scheduled events, or gives the
 * rights back and starts the events again. Resolves with whether earlier sessions may have other rights than new ones.
 * That is false if rights are given back that were never taken, as in a new database, whose first sessions so go on.
 */
export async function keepMysqlReadOnly(adminUrl: string, owner: Owner, isOn: boolean): Promise<boolean> {
  const revoke = `revoke ${fillingRights} on ${onlyDatabase(owner.databaseName)}.* from ${customerOf(owner.username)}`;
  return withMysql(adminUrl, async (server) => {
    const { rightsTaken } = await readLimit(server, owner);
    // MySQL refuses to revoke rights that were revoked before, so all rights are given first.
    await server.run(grantAll(owner));
    if (isOn) await server.run(revoke);
    await server.run(`set global event_scheduler = ${isOn ? 'off' : 'on'}`);
    // A running event is a session of the customer's too. The endpoint does not know it and cannot end it.
    if (isOn) await endSessions(server, await server.read(idSchema, sessionsSql(owner.username)));
    return isOn || rightsTaken;
  });
}

/** Removes all binary logs but the one that is written now. */
export const trimBinaryLog = (adminUrl: string): Promise<void> =>
  withMysql(adminUrl, async (server) => {
    await server.run('flush binary logs');
    const logs = await server.read(logSchema, 'show binary logs');
    await server.run(`purge binary logs to ${quoteText(logs.at(-1)?.Log_name ?? '')}`);
  });

const logSchema = z.object({ Log_name: z.string() });

const hostSchema = z.object({ host: z.string() });
const idSchema = z.object({ id: z.coerce.number() });

/**
 * The ports of the sessions that have logged in. MariaDB lists a session that is logging in under the name that its
 * client claims, so such a session is recognised by its command.
 */
export async function readMysqlPorts(adminUrl: string): Promise<ReadonlySet<number>> {
  const sql = `select host from information_schema.processlist
    where host like '127.0.0.1:%' and user <> 'unauthenticated user' and command <> 'Connect'`;
  const rows = await withMysql(adminUrl, (server) => server.read(hostSchema, sql));
  return new Set(rows.map(({ host }) => Number(host.slice(host.lastIndexOf(':') + 1))));
}

export async function endMysqlSession(adminUrl: string, port: number): Promise<void> {
  await withMysql(adminUrl, async (server) => {
    const host = quoteText(`127.0.0.1:${port}`);
    await endSessions(
      server,
      await server.read(idSchema, `select id from information_schema.processlist where host = ${host}`),
    );
  });
}

const unknownThread = 'ER_NO_SUCH_THREAD';

/** Ends the sessions. A session that has ended by itself is no error. */
async function endSessions(server: MysqlSession, sessions: readonly { id: number }[]): Promise<void> {
  for (const { id } of sessions)
    await server.run(`kill connection ${id}`).catch((error: { code?: string }) => {
      if (error.code !== unknownThread) throw error;
    });
}

const bytesSchema = z.object({ bytes: z.coerce.number() });

export async function readMysqlSize(adminUrl: string, databaseName: string): Promise<number | null> {
  const sql =
    'select coalesce(sum(data_length + index_length), 0) as bytes from information_schema.tables ' +
    `where table_schema = ${quoteText(databaseName)}`;
  try {
    return await withMysql(adminUrl, async (server) => (await server.read(bytesSchema, sql))[0]?.bytes ?? 0);
  } catch {
    return null;
  }
}

/** Lets the customer in or keeps it out. Does nothing before the customer's account was made. */
export async function applyMysqlAccess(adminUrl: string, { username, isOpen }: Access): Promise<void> {
  await withMysql(adminUrl, async (server) => {
    const sql = `select count(*) as n from mysql.user where user = ${quoteText(username)} and host = '%'`;
    if ((await server.read(countSchema, sql))[0]?.n !== 1) return;
    await (isOpen ? letIn(server, username) : lockOutMysql(server, username));
  });
}

/** Lets the customer in, and turns on the events that it has scheduled. */
export async function letIn(server: MysqlSession, username: string): Promise<void> {
  await server.run('set global read_only = off');
  await server.run(`alter user ${customerOf(username)} account unlock`);
  await server.run('set global event_scheduler = on');
}

const sessionsSql = (username: string): string =>
  `select id from information_schema.processlist where user = ${quoteText(username)}`;

const sealMs = 10_000;
const pollMs = 2;

/**
 * Ends every session of the customer and lets none in again. The customer cannot write once this has resolved, even
 * after a restart: the server keeps the lock of the account, and a frozen instance starts read-only. The call may be
 * repeated. Throws `not_caught_up` after 10 s.
 */
export async function lockOutMysql(server: MysqlSession, username: string): Promise<void> {
  await server.run('set global event_scheduler = off');
  await server.run(`alter user ${customerOf(username)} account lock`);
  const untilMs = performance.now() + sealMs;
  for (;;) {
    const left = await server.read(idSchema, sessionsSql(username));
    if (left.length === 0) break;
    if (performance.now() > untilMs)
      throw new DatabaseHostError('not_caught_up', `${left.length} sessions cannot be ended`);
    await endSessions(server, left);
    await wait(pollMs);
  }
  await server.run('set global read_only = on');
}

const createUserSchema = z.record(z.string(), z.string());

/**
 * Copies the customer's login to the target, with the same verifier. The copy is locked if the login on the old
 * instance is locked.
 */
export async function copyLogin(oldUrl: string, target: MysqlSession, username: string): Promise<void> {
  const old = await openMysql(oldUrl);
  try {
    if (!(await isMariadb(old))) await old.run('set session print_identified_with_as_hex = on');
    const [found] = await old.read(createUserSchema, `show create user ${customerOf(username)}`);
    const statement = Object.values(found ?? {})[0] ?? '';
    if (!statement.startsWith('CREATE USER ')) throw new Error('the server does not say how its user is made');
    await target.run(statement.replace(/^CREATE USER /, 'ALTER USER '));
  } finally {
    await old.close();
  }
}
