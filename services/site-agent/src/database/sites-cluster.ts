import { once } from 'node:events';
import { connect } from 'node:net';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Newcomers } from '@drydock/agent/host';
import {
  bySocket,
  diskFullMark,
  dropLogin,
  loginUrl,
  ScramClient,
  sessionStartupOptions,
  setRolePassword,
} from '@drydock/postgres';
import { classifyDatabaseError } from '@drydock/service/database';
import pg from 'pg';
import { z } from 'zod';
import { ConnectionBudget } from './connection-budget';
import type { ServerAddress } from './release-database';
import { TransferAccess } from './transfer-access';
import type { WokenServer } from './woken-server';

const quoteName = pg.escapeIdentifier;
const nameSchema = z.array(z.object({ datname: z.string() }));
/**
 * The connections, out of `max_connections`, that no site gets. They are for the site agent, its jobs and the
 * superuser. If `max_connections` is below 30, sites still get 10.
 */
const keptSessions = 20;
/**
 * The most disk space that the temporary files of one process of a session may have at a time. Only a superuser can
 * change the setting. Loads use roles of their own, which have no such limit.
 */
const temporaryFiles = '1GB';
/** The bytes of exported snapshots. A session can export any number of them, and each takes a block of the disk. */
const snapshotsSql = `(select 4096 * count(*) from pg_ls_dir('pg_snapshots'))`;
/** The bytes of dynamic shared memory, which the processes of a parallel query share. */
const sharedSql = `(select coalesce(sum((pg_stat_file('pg_dynshmem/' || name, true)).size), 0)
  from pg_ls_dir('pg_dynshmem') name)`;
/**
 * All databases of a server share some tables, such as those with comments on databases and settings of roles. On an
 * organisation's own server, these tables, exported snapshots and dynamic shared memory count for each site of the
 * organisation. On the operator's server they count for no site.
 */
const usageSql = `
  select pg_database_size(d.oid)::float8
    + case when $4 then pg_tablespace_size('pg_global') + ${snapshotsSql} + ${sharedSql} else 0 end as bytes,
  coalesce(s.setconfig @> $3::text[], false) as "isReadOnly" from pg_database d
  left join pg_db_role_setting s on s.setdatabase = d.oid
    and s.setrole = (select oid from pg_roles where rolname = $1) where d.datname = $2`;
/** Postgres' code for a role that exists already (duplicate object). */
const duplicateCode = '42710';
/** How long Postgres may recover after a crash of the machine. */
const recoveryMs = 60_000;
const portProbeMs = 2_000;

/** Finds a row if there is a database that is not the server's own, or a login of a site. */
const contentSql = `
  select from pg_database where not datistemplate and datname <> 'postgres'
  union all select from pg_roles where rolname ~ '^site_' and rolcanlogin limit 1`;
const leftRolesSql = `select rolname as name from pg_roles where rolname ~ '^site_' and not rolcanlogin`;
/** The interval at which sessions that block a statement of the site agent are ended. */
const endBlockersMs = 500;
const endBlockersSql = `
  select pg_terminate_backend(pid) from unnest(pg_blocking_pids($1)) blocker join pg_stat_activity on pid = blocker
  where usename <> current_user`;
const othersSql = `
  select from pg_stat_activity where backend_type = 'client backend' and application_name <> $1 limit 1`;

/**
 * A cluster with databases of sites. This class acts as the cluster's superuser, whose URL only this process has. It
 * connects to the database `postgres` and never to a site's database. The sites' databases are read and filled by the
 * roles of `transfer`.
 */
export class SitesCluster {
  readonly transfer: TransferAccess;
  /**
   * Resolves when the server runs. The methods of this class call it before their statements, except {@link isUnused}
   * and {@link readUsage}. Other code calls it before it opens a session.
   */
  readonly wake: () => Promise<void>;
  private readonly server: Pick<WokenServer, 'wake' | 'hold' | 'isStarted'> | null;
  private readonly admin: pg.Pool;
  private readonly url: URL;
  /** The folder of the socket by which clients reach the cluster. Null if its port is used. */
  readonly socketFolder: string | null;
  private readonly name: string;
  private places: { budget: ConnectionBudget; newcomers: Newcomers } | null = null;

  /**
   * `name` is used by this site agent only, and is the same at every start. With `socketFolder`, every connection uses
   * the socket in it, whatever host the URL names, because anybody could take the port of a server that is down.
   * Without `socketFolder`, connections use the port. `server` is an organisation's own server, which sleeps while
   * nobody uses it. It is null for the operator's server.
   */
  constructor(
    adminUrl: string,
    socketFolder: string | null,
    name: string,
    server: Pick<WokenServer, 'wake' | 'hold' | 'isStarted'> | null = null,
  ) {
    this.name = name;
    this.socketFolder = socketFolder;
    this.server = server;
    this.wake = async () => server?.wake();
    const url = socketFolder === null ? adminUrl : bySocket(adminUrl, socketFolder);
    this.url = new URL(url);
    this.admin = new pg.Pool({
      Client: ScramClient,
      connectionString: url,
      max: 4,
      connectionTimeoutMillis: 5_000,
      options: sessionStartupOptions(url, { purpose: 'admin', limits: { statementMs: 25_000 } }, true),
      application_name: name,
    });
    // An idle connection may break. The pool opens another one at the next use.
    this.admin.on('error', () => undefined);
    this.transfer = new TransferAccess(() => this.connect(), url, name);
  }

  /**
   * Waits for the server, ends the leftovers of an earlier site agent, and determines how many sessions sites may have.
   * Call this once, before any site uses the cluster.
   */
  async open(): Promise<void> {
    await this.waitForServer();
    await this.endPredecessors();
    await this.closeCommonDatabases();
    await this.dropLeftRoles();
    const sessions = await this.sessionsForSites();
    const newcomersMax = Math.ceil(sessions / 4);
    this.places = { budget: new ConnectionBudget(sessions - newcomersMax), newcomers: new Newcomers(newcomersMax) };
  }

  /** Shares the cluster's sessions between all its sites. */
  get budget(): ConnectionBudget {
    return this.opened.budget;
  }

  /** The places for sessions of all the cluster's sites that have not logged in yet, by site. */
  get newcomers(): Newcomers {
    return this.opened.newcomers;
  }

  private get opened(): { budget: ConnectionBudget; newcomers: Newcomers } {
    if (this.places === null) throw new Error('the cluster has not been opened');
    return this.places;
  }

  private async connect(): Promise<pg.PoolClient> {
    await this.wake();
    return this.admin.connect();
  }

  private async query(sql: string, values?: unknown[]): Promise<pg.QueryResult> {
    await this.wake();
    return this.admin.query(sql, values);
  }

  /**
   * Runs statements about a site's role or database, and ends every session that blocks them. A site's role can change
   * the same settings in a transaction and leave it open.
   */
  private async overrule(sql: string): Promise<void> {
    const admin = await this.connect();
    let timer: NodeJS.Timeout | undefined;
    try {
      const { rows } = await admin.query('select pg_backend_pid() as pid');
      const [{ pid }] = z.tuple([z.object({ pid: z.int() })]).parse(rows);
      timer = setInterval(() => void this.query(endBlockersSql, [pid]).catch(() => undefined), endBlockersMs);
      await admin.query(sql);
    } finally {
      clearInterval(timer);
      admin.release();
    }
  }

  /** Opens access for a job, and keeps the server running until its `close`. The operator's server is never stopped. */
  async hold<T extends object>(open: () => Promise<T>): Promise<T & { close(): void }> {
    return this.server?.hold(open) ?? { ...(await open()), close: () => undefined };
  }

  /** Tells whether no load is running, and all sessions are the site agent's own. */
  async isUnused(): Promise<boolean> {
    if (this.transfer.isLoading) return false;
    return (await this.admin.query(othersSql, [this.name])).rowCount === 0;
  }

  /** Tells whether no site has a database or a login in the cluster. */
  async isEmpty(): Promise<boolean> {
    return (await this.query(contentSql)).rowCount === 0;
  }

  /** The server's socket folder and port on this machine; null if connections use a port. */
  get place(): { socketFolder: string; port: number } | null {
    return this.socketFolder === null ? null : { socketFolder: this.socketFolder, port: Number(this.url.port || 5432) };
  }

  get address(): ServerAddress {
    const port = Number(this.url.port || 5432);
    return this.socketFolder === null
      ? { host: this.url.hostname, port }
      : { path: path.join(this.socketFolder, `.s.PGSQL.${port}`) };
  }

  /**
   * Resolves once the server takes statements. An error that waiting cannot cure is thrown at once. Any other error is
   * thrown if it still occurs after a minute.
   */
  async waitForServer(): Promise<void> {
    const endsAtMs = performance.now() + recoveryMs;
    for (;;) {
      try {
        await this.query('select 1');
        return;
      } catch (error) {
        const isRefused = error instanceof pg.DatabaseError && error.code?.startsWith('28');
        if (isRefused || classifyDatabaseError(error) !== 'unavailable' || performance.now() > endsAtMs) throw error;
        await sleep(500);
      }
    }
  }

  /**
   * Ends the sessions of an earlier site agent, and drops the roles that it made for dumps and loads. Postgres goes on
   * with a CREATE DATABASE whose client was killed. If that statement were not ended, its database would appear after
   * the clean-up.
   */
  private async endPredecessors(): Promise<void> {
    const sql =
      'select pg_terminate_backend(pid, 10000) from pg_stat_activity where application_name = $1 ' +
      'and pid <> pg_backend_pid() and usename = current_user';
    await this.query(sql, [this.name]);
    await this.transfer.sweep();
  }

  /**
   * Takes the right to connect to `postgres` and `template1` from everybody, because a site's role may enter only its
   * own databases.
   */
  private async closeCommonDatabases(): Promise<void> {
    // Without the lock, two site agents that start at the same time could fail with "tuple concurrently updated".
    const revokes = ['postgres', 'template1'].map(
      (name) => `revoke connect, temporary on database ${quoteName(name)} from public`,
    );
    await this.query(`select pg_advisory_xact_lock(7033905); ${revokes.join('; ')}`);
  }

  /** Makes the login role. Sets the password and the options again if the role exists already. */
  async ensureRole(role: string, password: string): Promise<void> {
    const options = 'login nosuperuser nocreatedb nocreaterole noreplication nobypassrls connection limit 25';
    const admin = await this.connect();
    try {
      await setRolePassword(admin, { verb: 'create', role, options, password }).catch(async (error: unknown) => {
        if (!(error instanceof pg.DatabaseError) || error.code !== duplicateCode) throw error;
        await setRolePassword(admin, { verb: 'alter', role, options, password });
      });
      await admin.query(`alter role ${quoteName(role)} set temp_file_limit = '${temporaryFiles}'`);
    } finally {
      admin.release();
    }
  }

  /**
   * Drops a role if possible. Any site of the cluster can give the role a right in that site's own database, and
   * Postgres does not drop a role with a right. Such a role loses its login. The next start of the site agent tries to
   * drop it again.
   */
  async dropRole(role: string): Promise<void> {
    const admin = await this.connect();
    try {
      await dropLogin(admin, role);
    } finally {
      admin.release();
    }
  }

  /** Drops the roles that {@link dropRole} had to leave. Roles that still cannot be dropped stay. */
  private async dropLeftRoles(): Promise<void> {
    const { rows } = await this.query(leftRolesSql);
    for (const { name } of z.array(z.object({ name: z.string() })).parse(rows))
      await this.dropRole(name).catch(() => undefined);
  }

  /** Makes an empty database that the role owns; nobody else may connect. */
  async createDatabase(name: string, owner: string): Promise<void> {
    await this.query(`create database ${quoteName(name)} owner ${quoteName(owner)} template template0 encoding 'UTF8'`);
    await this.query(`revoke connect, temporary on database ${quoteName(name)} from public`);
  }

  /**
   * Ends all sessions in the database and drops it. No error if the database has gone already. Its owner can make it a
   * template, which Postgres does not drop. So the owner first loses the database, and the template becomes an ordinary
   * database.
   */
  async dropDatabase(name: string): Promise<void> {
    const { rowCount } = await this.query('select from pg_database where datname = $1', [name]);
    const alter = `alter database ${quoteName(name)}`;
    if (rowCount === 1) await this.overrule(`${alter} owner to current_user; ${alter} is_template false`);
    await this.overrule(`drop database if exists ${quoteName(name)} with (force)`);
    await this.transfer.forget(name);
  }

  /** Ends every session in a database. A customer's client can connect again through the site's endpoint. */
  async endSessions(database: string): Promise<void> {
    await this.query(
      'select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and pid <> pg_backend_pid()',
      [database],
    );
  }

  /** Ends these sessions, if they are the role's own in that database. */
  async endSessionsOf(role: string, database: string, pids: number[]): Promise<void> {
    const sql =
      'select pg_terminate_backend(pid) from pg_stat_activity where pid = any($1) and usename = $2 and datname = $3';
    await this.query(sql, [pids, role, database]);
  }

  /** Ends all sessions of the role in its database. Dumps and loads have roles of their own and go on. */
  async endAllSessionsOf(role: string, database: string): Promise<void> {
    await this.query('select pg_terminate_backend(pid) from pg_stat_activity where usename = $1 and datname = $2', [
      role,
      database,
    ]);
  }

  /** Lists the databases of a site's role, and those that an interrupted removal has taken from the role. */
  async listDatabases(owner: string): Promise<string[]> {
    const sql = `select datname from pg_database where pg_get_userbyid(datdba) = $1 or starts_with(datname, $1 || '_')`;
    return nameSchema.parse((await this.query(sql, [owner])).rows).map((row) => row.datname);
  }

  /**
   * Returns the size of a database on disk, and whether {@link keepReadOnly} is in force for its role. Returns null if
   * the database has gone, or if the server sleeps: this question does not wake it.
   */
  async readUsage(role: string, database: string): Promise<{ bytes: number; isReadOnly: boolean } | null> {
    if (this.server?.isStarted === false) return null;
    const marks = [`${diskFullMark}=on`, 'default_transaction_read_only=on'];
    const { rows } = await this.admin.query(usageSql, [role, database, marks, this.server !== null]);
    return z.array(z.object({ bytes: z.number(), isReadOnly: z.boolean() })).parse(rows)[0] ?? null;
  }

  /**
   * Makes new sessions of the role read-only, or undoes that. A read-only session may still ask to write, so that rows
   * can be deleted. `diskFullMark` marks the setting as the site agent's, because a customer can make sessions
   * read-only too.
   */
  async keepReadOnly(role: string, database: string, isOn: boolean): Promise<void> {
    const alter = `alter role ${quoteName(role)} in database ${quoteName(database)}`;
    const names = ['default_transaction_read_only', diskFullMark];
    const changes = names.map((name) => (isOn ? `${alter} set ${name} = on` : `${alter} reset ${name}`));
    await this.overrule(changes.join('; '));
  }

  /**
   * Returns the URL by which the site agent reaches a database as a site's role, without the site's endpoint. An
   * application in a box cannot use a URL with a socket, because the box does not show the socket.
   */
  directUrl(role: string, password: string, database: string): string {
    return loginUrl(this.url.href, { role, password }, database);
  }

  /**
   * Tells whether the cluster can be reached by a port. Through a port, applications could use up the cluster's places.
   * While the server is down, they could listen at the port themselves.
   */
  async hasPort(): Promise<boolean> {
    if (this.socketFolder === null) return true;
    const { rowCount } = await this.query("select where current_setting('listen_addresses') = ''");
    if (rowCount === 1) return false;
    // A server in a container may listen only inside the container. So a connection from here is tried.
    const socket = connect({ host: this.url.hostname, port: Number(this.url.port || 5432), timeout: portProbeMs });
    socket.on('timeout', () => socket.destroy(new Error('no answer')));
    const isReached = await once(socket, 'connect').then(
      () => true,
      () => false,
    );
    socket.destroy();
    return isReached;
  }

  /**
   * Returns the number of sessions for all sites together, at least 10. The rest is for the site agent, its jobs and
   * the superuser.
   */
  private async sessionsForSites(): Promise<number> {
    const { rows } = await this.query("select current_setting('max_connections')::int as max");
    const [{ max }] = z.tuple([z.object({ max: z.int() })]).parse(rows);
    return Math.max(10, max - keptSessions);
  }

  async check(): Promise<void> {
    await this.query('select 1');
  }

  async close(): Promise<void> {
    await this.admin.end();
  }
}
