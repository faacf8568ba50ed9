import { Socket } from 'node:net';
import type { createPool, Pool, PoolConnection } from 'mysql2/promise';
import pg, { type Connection, type Submittable } from 'pg';

const pageStatementMs = 2_000;
/** How many rows of a query are kept. */
const pageRowsMax = 1_000;

const begin = 'begin isolation level repeatable read read only';
/** The time limit is set before each query, because an earlier query may have changed it. */
const limit = `set local statement_timeout = ${pageStatementMs}`;
/**
 * Statements that clear the session for the next page. The rollback undoes most of what a page has set. The other
 * statements undo what a rollback keeps.
 */
const clear = ['rollback', 'deallocate all', 'select pg_catalog.pg_advisory_unlock_all()', 'discard sequences'];

/** The result of a query. Each value is the text that the server sends. */
export interface QueryRows {
  /** The index of each column in a row. */
  columns: Map<string, number>;
  rows: (string | null)[][];
}

/**
 * A statement of the page's session. `rows` collects the result of a page's own query, and is null for all other
 * statements.
 */
interface Step {
  sql: string;
  rows: QueryRows | null;
}

/** A parameter that earlier versions of pg had, and that pg's types still require. */
const noMore = true;

/**
 * Runs all queries of one page in one read-only transaction, in one round trip. Each query uses the extended protocol,
 * which takes only one statement. So a page cannot end the transaction and run statements after it. Only the first rows
 * of each result are fetched.
 */
class PageQueries implements Submittable {
  private readonly steps: Step[];
  private readonly done: (error: Error | null) => void;
  private at = 0;

  constructor(steps: Step[], done: (error: Error | null) => void) {
    this.steps = steps;
    this.done = done;
  }

  submit(connection: Connection): void {
    connection.stream.cork();
    for (const { sql, rows } of this.steps) {
      connection.parse({ name: '', text: sql, types: [] }, noMore);
      connection.bind({}, noMore);
      if (rows !== null) connection.describe({ type: 'P', name: '' }, noMore);
      // pg's types require the number of rows as a string, but pg sends only a number.
      Reflect.apply(connection.execute, connection, [{ rows: pageRowsMax }]);
    }
    connection.sync();
    connection.stream.uncork();
  }

  handleRowDescription({ fields }: { fields: { name: string }[] }): void {
    for (const [place, { name }] of fields.entries()) this.steps[this.at]?.rows?.columns.set(name, place);
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    this.steps[this.at]?.rows?.rows.push(fields);
  }

  handleCommandComplete(): void {
    this.at += 1;
  }

  /** Called if the query has more rows than a page shows. */
  handlePortalSuspended(): void {
    this.at += 1;
  }

  handleEmptyQuery(): void {
    this.at += 1;
  }

  handleError(error: Error): void {
    this.done(error);
  }

  handleReadyForQuery(): void {
    this.done(null);
  }
}

async function runPageQueries(
  client: { query(queries: Submittable): unknown },
  queries: readonly string[],
): Promise<QueryRows[]> {
  const results = queries.map((): QueryRows => ({ columns: new Map(), rows: [] }));
  const own = (sql: string): Step => ({ sql, rows: null });
  const asked = queries.flatMap((sql, place): Step[] => [own(limit), { sql, rows: results[place] ?? null }]);
  await new Promise<void>((resolve, reject) => {
    const done = (error: Error | null): void => (error === null ? resolve() : reject(error));
    client.query(new PageQueries([own(begin), ...asked, ...clear.map(own)], done));
  });
  return results;
}

const connectionsMax = 5;
const connectMs = 2_000;
const idleMs = 10_000;

/** A session of a release's pages, for one page at a time. */
export interface PageSession {
  /** The session's number at the server: the backend's pid in Postgres, the thread id in MariaDB. */
  readonly number: number;
  hasOverflowed(): boolean;
  /** Limits the bytes that are received from now on. Beyond the limit the connection is closed. */
  allowBytes(bytes: number): void;
  breakOff(): void;
  /**
   * Runs all queries of a page in one read-only transaction. Afterwards the session holds nothing of the page. After an
   * error the session must not be kept.
   */
  run(queries: readonly string[]): Promise<QueryRows[]>;
  giveBack(isKept: boolean): void;
}

export interface PageSessions {
  take(): Promise<PageSession>;
}

/**
 * Opens a pool of sessions. `onOpen` is called with the number of each new session. MariaDB's driver is imported only
 * for a site with a MariaDB: this code runs in a process for each site, and the driver would take memory in each.
 */
export async function openPageSessions(url: string, onOpen: (number: number) => void): Promise<PageSessions> {
  if (!url.startsWith('mysql:')) return new PostgresSessions(url, onOpen);
  const driver = await import('mysql2/promise');
  return new MariadbSessions(driver, url, onOpen);
}

/**
 * A socket that closes when it receives more bytes than it may, so that a value of a gigabyte never gets into memory.
 */
class CountedSocket extends Socket {
  private left = Number.POSITIVE_INFINITY;
  hasOverflowed = false;

  constructor() {
    super();
    this.on('data', (piece: Buffer) => {
      this.left -= piece.length;
      if (this.left >= 0) return;
      this.hasOverflowed = true;
      this.destroy();
    });
  }

  allowBytes(bytes: number): void {
    this.left = bytes;
  }
}

class CountedClient extends pg.Client {
  readonly socket: CountedSocket;

  constructor(config?: string | pg.ClientConfig) {
    const socket = new CountedSocket();
    super({ ...(typeof config === 'object' ? config : {}), stream: () => socket });
    this.socket = socket;
    // The error is ignored here, because the query that waits gets it too.
    this.on('error', () => undefined);
  }

  /** `processID` is missing in pg's types. */
  get backendPid(): number {
    return 'processID' in this && typeof this.processID === 'number' ? this.processID : 0;
  }
}

class PostgresSessions implements PageSessions {
  private readonly pool: pg.Pool;

  constructor(url: string, onOpen: (number: number) => void) {
    this.pool = new pg.Pool({
      connectionString: url,
      max: connectionsMax,
      connectionTimeoutMillis: connectMs,
      idleTimeoutMillis: idleMs,
      application_name: 'site pages',
      Client: CountedClient,
    });
    // An idle connection may break. The pool opens another one for the next page.
    this.pool.on('error', () => undefined);
    this.pool.on('connect', (client) => {
      if (client instanceof CountedClient) onOpen(client.backendPid);
    });
  }

  async take(): Promise<PageSession> {
    const client = await this.pool.connect();
    if (!(client instanceof CountedClient)) throw new Error('the pool has connections of its own making');
    const { socket } = client;
    return {
      number: client.backendPid,
      ...sessionOn(socket),
      run: (queries) => runPageQueries(client, queries),
      giveBack: (isKept) => client.release(!isKept),
    };
  }
}

class MariadbSessions implements PageSessions {
  private readonly pool: Pool;

  constructor(driver: { createPool: typeof createPool }, url: string, onOpen: (number: number) => void) {
    const { searchParams, username: user, password, pathname } = new URL(url);
    const socketPath = searchParams.get('socketPath') ?? '';
    this.pool = driver.createPool({
      ...{ user, password, database: pathname.slice(1) },
      connectionLimit: connectionsMax,
      maxIdle: connectionsMax,
      idleTimeout: idleMs,
      connectTimeout: connectMs,
      rowsAsArray: true,
      stream: () => new CountedSocket().connect(socketPath),
    });
    this.pool.on('connection', (connection) => {
      connection.on('error', () => undefined);
      onOpen(connection.threadId ?? 0);
    });
  }

  async take(): Promise<PageSession> {
    const connection = await this.connect();
    const socket = socketOf(connection);
    return {
      number: connection.threadId ?? 0,
      ...sessionOn(socket),
      run: (queries) => runInMariadb(connection, queries),
      giveBack: (isKept) => (isKept ? connection.release() : connection.destroy()),
    };
  }

  /** Waits for a connection, with a limit. The pool itself would wait for ever. */
  private async connect(): Promise<PoolConnection> {
    const coming = this.pool.getConnection();
    let timer: NodeJS.Timeout | undefined;
    const late = new Promise<never>((_resolve, reject) => {
      timer = setTimeout(() => reject(new Error('timeout exceeded when trying to connect')), connectMs);
    });
    try {
      return await Promise.race([coming, late]);
    } catch (error) {
      void coming.then((connection) => connection.release()).catch(() => undefined);
      throw error;
    } finally {
      clearTimeout(timer);
    }
  }
}

function sessionOn(socket: CountedSocket): Pick<PageSession, 'hasOverflowed' | 'allowBytes' | 'breakOff'> {
  return {
    hasOverflowed: () => socket.hasOverflowed,
    allowBytes: (bytes) => socket.allowBytes(bytes),
    breakOff: () => void socket.destroy(),
  };
}

/** `stream` is missing in mysql2's types. */
function socketOf({ connection }: PoolConnection): CountedSocket {
  const socket: unknown = 'stream' in connection ? connection.stream : null;
  if (!(socket instanceof CountedSocket)) throw new Error('the pool has connections of its own making');
  return socket;
}

/**
 * Runs all queries in one transaction, each as a single statement with limits that it cannot lift. The reset clears
 * everything that a page has left in the session.
 */
async function runInMariadb(connection: PoolConnection, queries: readonly string[]): Promise<QueryRows[]> {
  const limits = `SET STATEMENT max_statement_time = ${pageStatementMs / 1000}, sql_select_limit = ${pageRowsMax} FOR`;
  await connection.query('START TRANSACTION WITH CONSISTENT SNAPSHOT, READ ONLY');
  const results: QueryRows[] = [];
  for (const query of queries) {
    const [rows, fields] = await connection.query({ sql: `${limits} ${query}`, typeCast: false });
    const values = Array.isArray(rows) ? (rows as unknown as (Buffer | null)[][]) : [];
    results.push({
      columns: new Map((fields ?? []).map(({ name }, place) => [name, place])),
      rows: values.map((row) => row.map((value) => value?.toString('utf8') ?? null)),
    });
  }
  await connection.query('ROLLBACK');
  await connection.reset();
  return results;
}
