import { Socket } from 'node:net';
import type pg from 'pg';
import { defaultCaps, type MessageCaps, MessageMeter } from './message-meter';
import { ScramClient } from './scram-client';

/**
 * A socket to Postgres without TLS. It breaks with `message_too_large` before an oversized message reaches the driver.
 */
class CappedSocket extends Socket {
  private readonly meter: MessageMeter;

  constructor(caps: MessageCaps) {
    super();
    this.meter = new MessageMeter(caps);
  }

  override push(chunk: unknown, encoding?: BufferEncoding): boolean {
    if (Buffer.isBuffer(chunk)) {
      try {
        this.meter.push(chunk);
      } catch (error) {
        this.destroy(error instanceof Error ? error : new Error(String(error)));
        return false;
      }
    }
    return super.push(chunk, encoding);
  }
}

/**
 * Settings that determine how COPY text and record_out write values. They are fixed, because values must be the same on
 * every server.
 */
const valueSettings = {
  client_encoding: 'UTF8',
  datestyle: 'ISO, YMD',
  intervalstyle: 'postgres',
  timezone: 'UTC',
  bytea_output: 'hex',
  extra_float_digits: '1',
  xmloption: 'content',
  lc_monetary: 'C',
  standard_conforming_strings: 'on',
  backslash_quote: 'safe_encoding',
  array_nulls: 'on',
  transform_null_equals: 'off',
  quote_all_identifiers: 'off',
};

/** Further settings that are fixed, because a hostile owner could change them for the database or its roles. */
const ownSettings = {
  local_preload_libraries: '',
  search_path: '',
  default_transaction_read_only: 'off',
  default_transaction_isolation: 'read committed',
  default_transaction_deferrable: 'off',
  default_tablespace: '',
  default_table_access_method: 'heap',
  temp_tablespaces: '',
  check_function_bodies: 'off',
  client_min_messages: 'error',
  synchronous_commit: 'off',
  // The setting ends a session whose client is gone, even during a statement.
  client_connection_check_interval: '10s',
};

/**
 * Row security must not hide rows from a reader, so a table with hidden rows is an error. Views and foreign tables are
 * refused, because they would run code of the customer.
 */
const readSettings = { row_security: 'off', restrict_nonsystem_relation_kind: 'view,foreign-table' };
/** Row security and views work in a load, because a materialised view is filled with the rows that its owner sees. */
const loadSettings = { row_security: 'on', restrict_nonsystem_relation_kind: '', maintenance_work_mem: '256MB' };

interface StartupSettings {
  purpose: SessionPurpose;
  login: string;
  role: string | undefined;
  limits: SessionLimits;
  /** Further settings, for example one that only the login may set. They are set before `role`. */
  settings?: Readonly<Record<string, string>> | undefined;
  /** True if the server's major is below 17, which introduced `transaction_timeout`. */
  isBefore17: boolean;
}

/** Returns the `options` of a startup packet. They override ALTER DATABASE and ALTER ROLE … SET. */
function startupOptions({ purpose, login, role, limits, settings: further, isBefore17 }: StartupSettings): string {
  const settings: Record<string, string> = {
    ...further,
    // "none" means the login itself. No role can have this name.
    role: role ?? 'none',
    // In a superuser's session, ALTER ROLE or ALTER DATABASE … SET session_authorization could change the role. Other
    // sessions are safe: only a superuser may change this setting.
    ...(purpose === 'admin' ? { session_authorization: login } : {}),
    ...valueSettings,
    ...ownSettings,
    ...(purpose === 'load' ? loadSettings : readSettings),
    statement_timeout: String(limits.statementMs),
    lock_timeout: String(limits.lockMs),
    idle_in_transaction_session_timeout: String(limits.idleMs),
    idle_session_timeout: String(limits.idleMs),
    ...(isBefore17 ? {} : { transaction_timeout: '0' }),
  };
  return Object.entries(settings)
    .map(([name, value]) => `-c ${name}=${value.replace(/[\\\s]/g, '\\$&')}`)
    .join(' ');
}

/**
 * The purpose of a session:
 * - `read` reads a customer's database as a reader and runs no code of the customer.
 * - `load` runs a customer's code with the rights of an owner, or works as a role of an upgrade.
 * - `admin` is a superuser in the database `postgres` or in an empty database.
 */
type SessionPurpose = 'read' | 'load' | 'admin';

interface SessionLimits {
  /** The time limit of a statement; 0 for no limit. */
  statementMs: number;
  lockMs: number;
  /** The longest idle time, within a transaction or outside; 0 for no limit. */
  idleMs: number;
}

const hourMs = 3_600_000;
const defaultLimits: Record<SessionPurpose, SessionLimits> = {
  // The limits are long, because a COPY lasts as long as its reader takes, and a transaction keeps its snapshot while
  // other sessions use it.
  read: { statementMs: 24 * hourMs, lockMs: 60_000, idleMs: 24 * hourMs },
  load: { statementMs: 24 * hourMs, lockMs: 60_000, idleMs: 24 * hourMs },
  admin: { statementMs: 60_000, lockMs: 20_000, idleMs: hourMs },
};

export interface SessionOptions {
  purpose: SessionPurpose;
  /** The role of the session from its first statement on. Default: the login. */
  role?: string | undefined;
  /** Further settings, which are set before `role`. */
  settings?: Readonly<Record<string, string>>;
  limits?: Partial<SessionLimits>;
  caps?: Partial<MessageCaps>;
  applicationName?: string;
  /** Aborting it destroys the socket, so that a running statement fails at once. */
  signal?: AbortSignal | undefined;
}

export interface Session {
  client: pg.Client;
  close(): Promise<void>;
}

/** Returns the URL of the same login through a Unix socket. The URL's port names the socket. */
export function bySocket(url: string, folder: string): string {
  const changed = new URL(url);
  changed.searchParams.set('host', folder);
  return changed.href;
}

/** Returns the socket folder in the parameter `host`, or else the URL's host. Postgres' own clients do the same. */
export function hostOf(url: URL): string {
  return url.searchParams.get('host') ?? url.hostname;
}

/** Returns the startup options of a session, for programs that connect by themselves, such as pg_dump. */
export function sessionStartupOptions(
  url: string,
  { purpose, role, limits, settings }: Pick<SessionOptions, 'purpose' | 'role' | 'limits' | 'settings'>,
  isBefore17: boolean,
): string {
  const login = decodeURIComponent(new URL(url).username);
  return startupOptions({
    purpose,
    login,
    role,
    settings,
    limits: { ...defaultLimits[purpose], ...limits },
    isBefore17,
  });
}

/**
 * Calls `open`, which connects to a server of unknown major. From 17 on, an owner can set `transaction_timeout`, so the
 * startup packet resets it. If an older server refuses that setting, `open` is called again with `isBefore17`.
 */
export async function forEitherServer<T>(open: (isBefore17: boolean) => Promise<T>): Promise<T> {
  try {
    return await open(false);
  } catch (error) {
    if (
      !(error instanceof Error && error.message.includes('unrecognized configuration parameter "transaction_timeout"'))
    )
      throw error;
    return open(true);
  }
}

/**
 * Opens a connection with fixed settings. They are in the startup packet, because a startup packet overrides the
 * owner's settings for the database and its roles. A message above `options.caps` ends the connection with
 * `message_too_large`.
 */
export const openSession = (url: string, options: SessionOptions): Promise<Session> =>
  forEitherServer((isBefore17) => openPinned(url, options, isBefore17));

async function openPinned(url: string, options: SessionOptions, isBefore17: boolean): Promise<Session> {
  const { signal, applicationName = 'drydock transfer' } = options;
  signal?.throwIfAborted();
  const socket = new CappedSocket({ ...defaultCaps, ...options.caps });
  const client = new ScramClient({
    connectionString: url,
    application_name: applicationName,
    connectionTimeoutMillis: 10_000,
    options: sessionStartupOptions(url, options, isBefore17),
    stream: () => socket,
  });
  // Without a listener, a broken connection would end the process. The next query reports the error.
  client.on('error', () => undefined);
  const abort = (): void => void socket.destroy(new Error('aborted'));
  signal?.addEventListener('abort', abort, { once: true });
  const close = async (): Promise<void> => {
    signal?.removeEventListener('abort', abort);
    await client.end().catch(() => undefined);
  };
  try {
    await client.connect();
    return { client, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Runs a statement and ignores its result. With the extended protocol, Postgres refuses a text with two statements. */
export async function runStatement(client: pg.ClientBase, text: string): Promise<void> {
  const query: pg.QueryConfig & { queryMode: 'extended' } = { text, queryMode: 'extended' };
  await client.query(query);
}
