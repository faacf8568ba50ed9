import mysql, { type Connection } from 'mysql2';
import type { Flavour } from '../engines/list-engines';
import { asTransferError, TransferError } from './transfer-error';

export const quoteName = (name: string): string => `\`${name.replaceAll('`', '``')}\``;

/** Returns a string expression that means the same in every sql_mode. */
export const quoteText = (text: string): string =>
  text === '' ? "''" : `CONVERT(X'${Buffer.from(text).toString('hex')}' USING utf8mb4)`;

/**
 * Returns SQL that compares a column of information_schema with exactly this name. A plain comparison treats `Users` as
 * `users`, and `ä` as `a`.
 */
export const isName = (column: string, name: string): string =>
  `${column} = ${quoteText(name)} AND CAST(${column} AS BINARY) = X'${Buffer.from(name).toString('hex')}'`;

/**
 * Returns a literal for places that allow no expression, such as CREATE USER. Session.open sets an sql_mode in which a
 * backslash is an escape character.
 */
export const quoteLiteral = (text: string): string => `'${text.replaceAll('\\', '\\\\').replaceAll("'", "''")}'`;

export const quoteAccount = ({ user, host }: { user: string; host: string }): string =>
  `${quoteLiteral(user)}@${quoteLiteral(host)}`;

/** A login through the server's socket. */
export interface Login {
  socketPath: string;
  user: string;
  password: string;
}

export interface SessionOptions {
  flavour: Flavour;
  /** The time limit of one statement. MySQL limits only SELECT statements. */
  statementMs?: number;
  /** The longest wait for a lock on a definition or a row. */
  lockMs?: number;
  /** An abort destroys the connection, so that a running statement fails at once. */
  signal?: AbortSignal | undefined;
}

/** Values as the server sends them, in the character set of their columns. */
export type RawRow = (Buffer | null)[];

const hourMs = 3_600_000;
const connectMs = 10_000;

/**
 * A session with fixed settings that a customer cannot change. Statements and values are bytes: a string is sent as
 * UTF-8, and a Buffer unchanged. The server refuses two statements in one text, and this client refuses to send a file.
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
      // mysql2 requests IGNORE_SPACE by default. The flag would become a part of the sql_mode of every routine.
      flags: ['-IGNORE_SPACE', '-LOCAL_FILES', '-MULTI_STATEMENTS'],
      connectTimeout: connectMs,
      // A statement is sent as it is, without placeholders for values.
      queryFormat: (statement: string) => statement,
      infileStreamFactory: () => {
        throw new TransferError('refused', 'the server asks for a file of ours');
      },
    });
    // Each statement reports the connection's error. Without a listener, the error would end the process.
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

  rows(statement: string | Buffer): Promise<RawRow[]> {
    return new Promise((resolve, reject) => {
      this.connection.query({ sql: asBytes(statement), rowsAsArray: true, typeCast: false }, (error, result) =>
        error ? reject(readable(error)) : resolve(Array.isArray(result) ? (result as unknown as RawRow[]) : []),
      );
    });
  }

  async run(statement: string | Buffer): Promise<void> {
    await this.rows(statement);
  }

  /**
   * Runs a statement about the server's own information, which is UTF-8, and returns its rows as text. A customer's
   * value may have another character set.
   */
  async texts(statement: string): Promise<(string | null)[][]> {
    return (await this.rows(statement)).map((row) => row.map((value) => value?.toString('utf8') ?? null));
  }

  /** Runs a statement whose columns differ between versions, and returns its rows by column name. */
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
   * Runs a statement and yields its rows in batches, as they arrive. A batch ends with the row that brings it to
   * `bytes` bytes or more. The server waits for a slow reader.
   */
  async *batches(statement: string, bytes: number): AsyncGenerator<RawRow[]> {
    // The stream's limit counts rows, not bytes, and a row may have a gigabyte, so the limit is one row. Small rows are
    // not slower for it, because mysql2 parses all rows of a network chunk at once and keeps them until they are read.
    const rows = this.connection
      .query({ sql: asBytes(statement), rowsAsArray: true, typeCast: false })
      .stream({ highWaterMark: 1 });
    rows.on('error', readable);
    let batch: RawRow[] = [];
    let held = 0;
    for await (const first of rows as AsyncIterable<RawRow>) {
      // Rows that have already arrived are read without waiting, up to the end of the batch.
      for (let row: RawRow | null = first; row !== null; row = held < bytes ? (rows.read() as RawRow | null) : null) {
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

  /** Ends the session at once, with any running statement. */
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

/** Decodes the server's message, which is UTF-8 but was read as one character for each byte. */
function readable(error: Error): Error {
  if ('sqlMessage' in error) error.message = Buffer.from(error.message, 'latin1').toString('utf8');
  return error;
}

/**
 * Returns a string that mysql2 sends as one byte for each character, because the connection has the character set
 * `binary`.
 */
const asBytes = (statement: string | Buffer): string =>
  (typeof statement === 'string' ? Buffer.from(statement) : statement).toString('latin1');

/** Returns the fixed settings. Texts are sent as UTF-8, and results arrive as they are stored. */
function pinnedSettings({ flavour, statementMs = 24 * hourMs, lockMs = 60_000 }: SessionOptions): string[] {
  const lockSeconds = Math.max(1, Math.ceil(lockMs / 1000));
  const limit =
    flavour === 'mariadb' ? `max_statement_time = ${statementMs / 1000}` : `max_execution_time = ${statementMs}`;
  return [
    // The server must not report changes of variables, because mysql2 would then follow a changed character set and
    // encode bytes twice.
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
