import mysql, { type Connection } from 'mysql2';
import type { Flavour } from '../engines/list-engines';
import { asTransferError, TransferError } from './transfer-error';

/** Quotes an identifier, whatever it contains. */
export const quoteName = (name: string): string => `\`${name.replaceAll('`', '``')}\``;

/** A string literal that means the same in every sql_mode. */
export const quoteText = (text: string): string =>
  text === '' ? "''" : `CONVERT(X'${Buffer.from(text).toString('hex')}' USING utf8mb4)`;

/**
 * SQL: whether a column of information_schema is exactly this name. Its own comparison treats `Users` as `users`, and
 * `ä` as `a`.
 */
export const isName = (column: string, name: string): string =>
  `${column} = ${quoteText(name)} AND CAST(${column} AS BINARY) = X'${Buffer.from(name).toString('hex')}'`;

/**
 * A string literal for a place where no expression is allowed, as in CREATE USER. Session.open has fixed an sql_mode in
 * which a backslash escapes.
 */
export const quoteLiteral = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;

export const quoteAccount = ({ user, host }: { user: string; host: string }): string =>
  `${quoteLiteral(user)}@${quoteLiteral(host)}`;

/** An account, and the socket of its server. Passwords go into no statement. */
export interface Login {
  socketPath: string;
  user: string;
  password: string;
}

export interface SessionOptions {
  flavour: Flavour;
  /** How long one statement may take. */
  statementMs?: number;
  /** How long a statement may wait for a lock on a definition or a row. */
  lockMs?: number;
  /** When it aborts, the connection is destroyed, so that everything that runs on it fails at once. */
  signal?: AbortSignal | undefined;
}

/** Values as the server sends them, in the character set of their column. */
export type RawRow = (Buffer | null)[];

const hourMs = 3_600_000;
const connectMs = 10_000;

/**
 * A session whose settings no customer can change. Statements and values are bytes: a statement in a JavaScript string
 * is sent as UTF-8, and a Buffer is sent unchanged. The server refuses a text that contains two statements, and this
 * client refuses to send the server a file.
 */
export class Session {
  private readonly connection: Connection;
  readonly flavour: Flavour;
  private readonly forget: () => void;

  private constructor(connection: Connection, flavour: Flavour, forget: () => void) {
    this.connection = connection;
    this.flavour = flavour;
    this.forget = forget;
  }

  static async open(login: Login, options: SessionOptions): Promise<Session> {
    const { signal, flavour } = options;
    signal?.throwIfAborted();
    const connection = mysql.createConnection({
      ...login,
      charset: 'BINARY',
      // mysql2 asks for IGNORE_SPACE by default, which would become the sql_mode of every routine.
      flags: ['-IGNORE_SPACE', '-LOCAL_FILES', '-MULTI_STATEMENTS'],
      connectTimeout: connectMs,
      // A statement is complete. It is not searched for places where values would go.
      queryFormat: (statement: string) => statement,
      infileStreamFactory: () => {
        throw new TransferError('refused', 'the server asks for a file of ours');
      },
    });
    // Each statement reports the connection's error; without a listener the error would end the process.
    connection.on('error', () => undefined);
    const abort = (): void => connection.destroy();
    signal?.addEventListener('abort', abort, { once: true });
    const session = new Session(connection, flavour, () => signal?.removeEventListener('abort', abort));
    try {
      await new Promise<void>((resolve, reject) => connection.connect((error) => (error ? reject(error) : resolve())));
      for (const statement of pinnedSettings(options)) await session.run(statement);
      return session;
    } catch (error) {
      await session.close();
      throw asTransferError('unavailable', error);
    }
  }

  /** Runs one statement and gives its rows. */
  rows(statement: string | Buffer): Promise<RawRow[]> {
    return new Promise((resolve, reject) => {
      this.connection.query({ sql: asBytes(statement), rowsAsArray: true, typeCast: false }, (error, result) =>
        error ? reject(readable(error)) : resolve(Array.isArray(result) ? (result as unknown as RawRow[]) : []),
      );
    });
  }

  /** Runs one statement whose result does not matter. */
  async run(statement: string | Buffer): Promise<void> {
    await this.rows(statement);
  }

  /** The rows of one statement as text, for what the server reports about itself. */
  async texts(statement: string): Promise<(string | null)[][]> {
    return (await this.rows(statement)).map((row) => row.map((value) => value?.toString('utf8') ?? null));
  }

  /** Reads rows by the names of their columns, for a statement whose columns differ between versions. */
  records(statement: string): Promise<Record<string, string>[]> {
    return new Promise((resolve, reject) => {
      this.connection.query({ sql: asBytes(statement), typeCast: false }, (error, result) => {
        if (error) return reject(readable(error));
        const rows = Array.isArray(result) ? (result as unknown as Record<string, Buffer | null>[]) : [];
        resolve(
          rows.map((row) =>
            Object.fromEntries(Object.entries(row).map(([name, value]) => [name, value?.toString('utf8') ?? ''])),
          ),
        );
      });
    });
  }

  /**
   * The rows of one statement in batches of about this many bytes, as they come. The server waits when the reader is
   * slow.
   */
  async *batches(statement: string, bytes: number): AsyncGenerator<RawRow[]> {
    const rows = this.connection
      .query({ sql: asBytes(statement), rowsAsArray: true, typeCast: false })
      .stream({ highWaterMark: 64 });
    rows.on('error', readable);
    let batch: RawRow[] = [];
    let held = 0;
    for await (const first of rows as AsyncIterable<RawRow>) {
      // Rows that are here already are taken without waiting for each one.
      for (let row: RawRow | null = first; row !== null; row = rows.read() as RawRow | null) {
        batch.push(row);
        held = row.reduce((total, value) => total + (value?.length ?? 0), held);
      }
      if (held < bytes) continue;
      yield batch;
      batch = [];
      held = 0;
    }
    if (batch.length > 0) yield batch;
  }

  /** Ends the session at once, whatever it does. */
  destroy(): void {
    this.forget();
    this.connection.destroy();
  }

  async close(): Promise<void> {
    this.forget();
    await new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, 1_000);
      this.connection.end(() => {
        clearTimeout(timer);
        resolve();
      });
    });
    this.connection.destroy();
  }
}

/** The server's messages are UTF-8, but were read as one character for each byte. */
function readable(error: Error): Error {
  if ('sqlMessage' in error) error.message = Buffer.from(error.message, 'latin1').toString('utf8');
  return error;
}

/** On a connection with the character set `binary`, each character of a string is sent as one byte. */
const asBytes = (statement: string | Buffer): string =>
  (typeof statement === 'string' ? Buffer.from(statement) : statement).toString('latin1');

/** Texts are sent as UTF-8, and results come as they are stored. */
function pinnedSettings({ flavour, statementMs = 24 * hourMs, lockMs = 60_000 }: SessionOptions): string[] {
  const lockSeconds = Math.max(1, Math.ceil(lockMs / 1000));
  const limit =
    flavour === 'mariadb' ? `max_statement_time = ${statementMs / 1000}` : `max_execution_time = ${statementMs}`;
  return [
    // The server reports no changes of variables. Otherwise mysql2 would follow the next statement's change of the
    // character set, and encode bytes a second time.
    "SET SESSION session_track_system_variables = ''",
    'SET NAMES utf8mb4',
    'SET character_set_results = NULL',
    `SET SESSION sql_mode = '', time_zone = '+00:00', sql_quote_show_create = 1, sql_select_limit = DEFAULT`,
    `SET SESSION lock_wait_timeout = ${lockSeconds}, innodb_lock_wait_timeout = ${lockSeconds}`,
    `SET SESSION ${limit}`,
    'SET SESSION net_write_timeout = 86400, net_read_timeout = 86400, wait_timeout = 86400',
    'SET SESSION default_storage_engine = InnoDB, lc_messages = en_US, auto_increment_increment = 1, ' +
      'auto_increment_offset = 1',
  ];
}
