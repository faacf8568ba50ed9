import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { countFolder, Newcomers } from '@drydock/agent/host';
import {
  findEngine,
  type MysqlServer,
  nativeVerifier,
  openAdmin,
  startMysql,
  sweepTransferAccounts,
} from '@drydock/mysql';
import { errorCodeOf, KeptServer, type RunningServer, removeServerFolders, scaled } from '@drydock/process';
import type { Log } from '@drydock/service/telemetry';
import { createConnection } from 'mysql2/promise';
import { ConnectionBudget } from './connection-budget';
import type {
  DatabaseUsage,
  JobAccess,
  ReaderAccess,
  ReleaseDatabase,
  ServerAddress,
  SqlProbe,
} from './release-database';
import { WokenServer } from './woken-server';

/** The only database of a release's server. */
export const mariadbDatabase = 'site';
/**
 * The customer's account in the database. Its host is `localhost`, because the site agent connects clients to the
 * server's socket.
 */
export const siteAccount = 'site';
/** The account of a release's pages. Its name has the platform's prefix, so that no dump contains it. */
export const pagesAccount = 'drydock_pages';
const [site, pages] = [`${siteAccount}@localhost`, `${pagesAccount}@localhost`];
const everything = `${mariadbDatabase}.*`;

/**
 * SQL condition that selects the site's sessions in the process list. While a session changes its account
 * (COM_CHANGE_USER), the list shows the account name that the client claims. So every session in that state counts as
 * the site's.
 */
const ofSite = `user = '${siteAccount}' OR command = 'Change user'`;

/** The most connections of a server. The endpoint opens fewer sessions, so that some are left for the site agent. */
const connectionsMax = 200;
const placesMax = 25;
const newcomersMax = 20;
const loginSeconds = 3;
/** Memory for all sessions of a server together, besides its buffers. */
const sessionsBytes = 512 * 2 ** 20;
/** The longest query of a page, in seconds. */
const pageSeconds = 2;
/**
 * The rights with which a site can fill the disk. A site over its disk limit loses them and keeps SELECT, DELETE and
 * DROP, which also allows TRUNCATE. It keeps EVENT too, because an event cannot be dropped without that right. The
 * events of such a site do not run.
 */
const fillingRights =
  'INSERT, UPDATE, CREATE, ALTER, INDEX, REFERENCES, CREATE TEMPORARY TABLES, CREATE VIEW, CREATE ROUTINE, TRIGGER';

export interface MariadbDatabaseOptions {
  name: string;
  siteId: string;
  /** The password of the site's account. */
  password: string;
  version: string;
  /** The system account that the site's servers run under. */
  account: number;
  folder: string;
  onStart: (child: { process: { pid: number }; exited: Promise<unknown> }) => void;
  onDropped: () => void;
  log: Log;
}

type Admin = Awaited<ReturnType<typeof openAdmin>>;

/**
 * The MariaDB of a release, on a server of its own. The server starts at its first use. It stops when nobody uses it,
 * and at the latest with this process.
 */
export class MariadbDatabase implements ReleaseDatabase {
  readonly name: string;
  /**
   * Each release has a password of its own, which is new at each start of the site agent. So a page of an old release
   * cannot read the data of a newer release.
   */
  readonly pagesPassword = randomBytes(24).toString('hex');
  readonly newcomers = new Newcomers(newcomersMax);
  private readonly options: MariadbDatabaseOptions;
  private readonly budget = new ConnectionBudget(placesMax);
  private readonly kept: KeptServer<MysqlServer & RunningServer>;
  private readonly woken: WokenServer;
  private server: MysqlServer | null = null;
  private isServed = false;
  private isLoading = false;

  constructor(options: MariadbDatabaseOptions) {
    this.name = options.name;
    this.options = options;
    const { folder, log } = options;
    this.kept = new KeptServer({
      facts: {},
      log,
      start: () => this.start(),
      onUp: (server) => this.prepare(server),
      onDown: () => undefined,
    });
    this.woken = new WokenServer({ server: this.kept, isUnused: () => this.isUnused(), folder, log });
  }

  wake(): Promise<void> {
    return this.woken.wake();
  }

  get address(): ServerAddress {
    return { path: this.running.socketPath };
  }

  takePlace(end: () => void): (() => void) | null {
    return this.budget.take(this.options.siteId, end);
  }

  ensureAccount(): Promise<void> {
    return this.asAdmin((admin) => this.giveAccount(admin));
  }

  /**
   * Makes this the database of the live release. Events run only in that database. A stopped server without events
   * stays stopped until somebody uses it.
   */
  async serve(): Promise<void> {
    this.isServed = true;
    if (this.woken.isStarted || existsSync(this.eventsNote)) await this.asAdmin((admin) => this.open(admin));
  }

  async leave(): Promise<void> {
    this.isServed = false;
    if (!this.woken.isStarted) return;
    await this.asAdminOrAfresh(async (admin) => {
      await runEvents(admin, false);
      await endSessions(admin, `user = '${pagesAccount}' OR ${ofSite}`);
    });
  }

  async endSessions(numbers: number[]): Promise<void> {
    const ids = numbers.filter(Number.isSafeInteger).join(', ');
    if (!this.woken.isStarted || ids === '') return;
    const which = `(user IN ('${pagesAccount}', 'unauthenticated user') OR ${ofSite}) AND id IN (${ids})`;
    await this.asAdmin((admin) => endSessions(admin, which));
  }

  endSiteSessions(): Promise<void> {
    return this.asAdminOrAfresh((admin) => endSessions(admin, ofSite));
  }

  get worksAlone(): boolean {
    return this.woken.isStarted && existsSync(this.eventsNote);
  }

  /** Counts temporary files too, because one statement can fill the disk with them. */
  async readUsage(): Promise<DatabaseUsage | null> {
    if (!this.woken.isStarted) return null;
    const { dataDir, proof } = this.running;
    // The server's folder has the data and the temporary files.
    const bytes = await countFolder(path.dirname(dataDir));
    if (bytes === null) return null;
    const ask = async (admin: Admin): Promise<boolean> => {
      await this.noteEvents(admin);
      return isReadOnly(admin);
    };
    const isKept = await this.asAdmin(ask).catch((error: unknown) => {
      if (!isOutOfMemory(error)) throw error;
      return null;
    });
    return { bytes, isReadOnly: isKept, pid: proof.pid };
  }

  keepReadOnly(isOn: boolean): Promise<void> {
    const change = isOn
      ? `REVOKE ${fillingRights} ON ${everything} FROM ${site}`
      : `GRANT ALL PRIVILEGES ON ${everything} TO ${site}`;
    return this.asAdmin(async (admin) => {
      await admin.run(change);
      if (this.isServed) await runEvents(admin, !isOn);
    });
  }

  async probe(deadlineMs: number): Promise<SqlProbe> {
    try {
      await this.wake();
      const login = { socketPath: this.running.socketPath, user: siteAccount, password: this.options.password };
      const connection = await createConnection({ ...login, database: mariadbDatabase, connectTimeout: deadlineMs });
      connection.on('error', () => undefined);
      try {
        await connection.query({ sql: 'select count(*) from information_schema.tables', timeout: deadlineMs });
        return { isAnswered: true, detail: null };
      } finally {
        connection.destroy();
      }
    } catch (error) {
      const detail = `sql: ${error instanceof Error ? error.message : String(error)}`;
      const isAnswer = error instanceof Error && 'sqlState' in error && !passing.has(errorCodeOf(error));
      return { isAnswered: isAnswer, detail };
    }
  }

  openReader(): Promise<ReaderAccess> {
    return this.woken.hold(() => this.access());
  }

  async openLoader(): Promise<JobAccess> {
    this.isLoading = true;
    return this.access();
  }

  /** Ends the load. Makes the database `site` if the dump did not contain it, and unlocks the site's account. */
  async closeLoader(): Promise<void> {
    await this.asAdmin(async (admin) => {
      await this.giveAccount(admin);
      await this.noteEvents(admin);
    });
    this.isLoading = false;
  }

  async drop(): Promise<void> {
    await this.close();
    await removeServerFolders(this.options.folder);
    this.options.onDropped();
  }

  stopIfUnused(nowMs: number): Promise<void> {
    return this.woken.stopIfUnused(nowMs);
  }

  close(): Promise<void> {
    return this.woken.close();
  }

  private get running(): MysqlServer {
    if (this.server === null) throw new Error('the server of this database has not been started');
    return this.server;
  }

  private async access(): Promise<JobAccess> {
    await this.wake();
    const { admin, engine, socketPath } = this.running;
    return {
      database: { engine: 'mariadb', login: admin, release: engine.release },
      socketFolder: path.dirname(socketPath),
    };
  }

  private async start(): Promise<MysqlServer & RunningServer> {
    const { folder, version, account, onStart } = this.options;
    const engine = await findEngine('mariadb', version);
    await mkdir(folder, { recursive: true, mode: 0o711 });
    const server = await startMysql({
      ...{ engine, folder, account, sessionsBytes },
      hasBinaryLog: false,
      settings: {
        'max-connections': String(connectionsMax),
        'connect-timeout': String(Math.ceil(scaled(loginSeconds * 1000) / 1000)),
        // TLS is off, because the endpoint has to read the login.
        ssl: 'OFF',
      },
    });
    onStart({ process: { pid: server.proof.pid }, exited: server.exited });
    return { ...server, adminUrl: `mysql://root@localhost/?socketPath=${encodeURIComponent(server.socketPath)}` };
  }

  /**
   * Removes the accounts for dumps and loads that an earlier site agent left. For the live release, also makes the
   * pages' account, and lets events run unless the site is over its disk limit.
   */
  private async prepare(server: MysqlServer): Promise<void> {
    this.server = server;
    await sweepTransferAccounts(server.admin, 'mariadb');
    if (this.isServed) await withAdmin(server, (admin) => this.open(admin));
  }

  private async giveAccount(admin: Admin): Promise<void> {
    await admin.run(`CREATE DATABASE IF NOT EXISTS ${mariadbDatabase} CHARACTER SET utf8mb4`);
    await admin.run(`CREATE USER IF NOT EXISTS ${site} ACCOUNT LOCK`);
    const login = `IDENTIFIED VIA mysql_native_password USING '${nativeVerifier(this.options.password)}'`;
    await admin.run(`ALTER USER ${site} ${login} REQUIRE NONE WITH MAX_USER_CONNECTIONS ${placesMax} ACCOUNT UNLOCK`);
    await admin.run(`GRANT ALL PRIVILEGES ON ${everything} TO ${site}`);
  }

  private async open(admin: Admin): Promise<void> {
    const login = `IDENTIFIED VIA mysql_native_password USING '${nativeVerifier(this.pagesPassword)}'`;
    await admin.run(
      `CREATE OR REPLACE USER ${pages} ${login} WITH MAX_USER_CONNECTIONS 10 MAX_STATEMENT_TIME ${pageSeconds}`,
    );
    await admin.run(`GRANT SELECT, SHOW VIEW, EXECUTE ON ${everything} TO ${pages}`);
    await runEvents(admin, !(await isReadOnly(admin)));
  }

  /** Tells whether nobody uses the server. The server of the live release is also in use while it has events. */
  private async isUnused(): Promise<boolean> {
    if (this.isLoading) return false;
    const others = "id <> CONNECTION_ID() AND user NOT IN ('system user', 'event_scheduler')";
    return this.asAdmin(async (admin) => {
      const found = await admin.texts(`SELECT 1 FROM information_schema.processlist WHERE ${others} LIMIT 1`);
      if (found.length > 0) return false;
      return !(this.isServed && (await this.noteEvents(admin)));
    });
  }

  /**
   * Tells whether the database has enabled events. The answer is kept in a file beside the data, so that the site agent
   * knows it at its next start without starting the server.
   */
  private async noteEvents(admin: Admin): Promise<boolean> {
    // mysql.event is read, because information_schema would read the text of each event first.
    const rows = await admin.texts(`SELECT 1 FROM mysql.event WHERE status = 'ENABLED' LIMIT 1`);
    const hasEvents = rows.length > 0;
    if (hasEvents !== existsSync(this.eventsNote))
      await (hasEvents ? writeFile(this.eventsNote, '') : rm(this.eventsNote, { force: true }));
    return hasEvents;
  }

  private get eventsNote(): string {
    return path.join(this.options.folder, 'has-events');
  }

  /**
   * Runs `work`, which ends sessions. If the sessions hold all memory of the server, the server can run no statement of
   * the site agent. The server is then restarted, which ends all sessions.
   */
  private async asAdminOrAfresh(work: (admin: Admin) => Promise<void>): Promise<void> {
    try {
      await this.asAdmin(work);
    } catch (error) {
      if (!isOutOfMemory(error)) throw error;
      this.options.log.warn(
        { err: error },
        'the sessions of a site hold all memory of its database server, which is started again',
      );
      await this.running.stop();
    }
  }

  private async asAdmin<T>(work: (admin: Admin) => Promise<T>): Promise<T> {
    if (!this.woken.isStarted) await this.wake();
    return withAdmin(this.running, work);
  }
}

/** The error codes of a server that starts, stops or has no connection left. */
const passing: ReadonlySet<string> = new Set([
  'ER_CON_COUNT_ERROR',
  'ER_SERVER_SHUTDOWN',
  'ER_USER_LIMIT_REACHED',
  'ER_TOO_MANY_USER_CONNECTIONS',
]);

const memoryCodes: ReadonlySet<string> = new Set([
  'EE_OUTOFMEMORY',
  'ER_CANT_CREATE_THREAD',
  'ER_OUTOFMEMORY',
  'ER_OUT_OF_RESOURCES',
  'ER_OUT_OF_SORTMEMORY',
]);

function isOutOfMemory(error: unknown): boolean {
  return (
    memoryCodes.has(errorCodeOf(error)) ||
    (error instanceof Error && error.cause !== undefined && isOutOfMemory(error.cause))
  );
}

async function withAdmin<T>({ admin: login }: MysqlServer, work: (admin: Admin) => Promise<T>): Promise<T> {
  const admin = await openAdmin(login, 'mariadb');
  try {
    return await work(admin);
  } finally {
    await admin.close();
  }
}

/** Tells whether the site's account has lost the {@link fillingRights}. */
async function isReadOnly(admin: Admin): Promise<boolean> {
  const sql = `SELECT 1 FROM mysql.db WHERE User = '${siteAccount}' AND Host = 'localhost' AND Insert_priv = 'N'`;
  return (await admin.texts(sql)).length > 0;
}

const runEvents = (admin: Admin, mayRun: boolean): Promise<void> =>
  admin.run(`SET GLOBAL event_scheduler = ${mayRun ? 'ON' : 'OFF'}`);

/** Ends the sessions that the condition `which` selects. A session that has ended by itself is no error. */
async function endSessions(admin: Admin, which: string): Promise<void> {
  const rows = await admin.texts(`SELECT id FROM information_schema.processlist WHERE ${which}`);
  for (const [id] of rows)
    await admin.run(`KILL CONNECTION ${Number(id)}`).catch((error: unknown) => {
      if (errorCodeOf(error) !== 'ER_NO_SUCH_THREAD') throw error;
    });
}
