import { Socket } from 'node:net';
import type pg from 'pg';
import { defaultCaps, type MessageCaps, MessageMeter } from './message-meter';
import { ScramClient } from './scram-client';

/**
 * CappedSocket is a socket to Postgres. It breaks with `message_too_large` before anything larger than its caps gets
 * into the driver's memory. No TLS.
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
 * Settings that decide how COPY in text form and record_out write values. They are fixed, because values must read the
 * same on every server.
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

/** Settings that the owner of a database could set for it and for its roles, to harm whoever connects next. */
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
  // A session whose client has gone ends, also in the middle of a statement.
  client_connection_check_interval: '10s',
};

/** Row security never hides rows from a reader: a table that it cannot read completely is an error. */
const readSettings = { row_security: 'off', restrict_nonsystem_relation_kind: 'view,foreign-table' };
/**
 * A materialised view is filled as its owner fills it: through views, and under the policies that apply to the owner.
 */
const loadSettings = { row_security: 'on', restrict_nonsystem_relation_kind: '', maintenance_work_mem: '256MB' };

interface StartupSettings {
  purpose: SessionPurpose;
  /** The role that logs in. */
  login: string;
  role: string | undefined;
  limits: SessionLimits;
  /** Further settings, for example one that only the role that logs in may set. They are set before `role` is. */
  settings?: Readonly<Record<string, string>> | undefined;
  /** Whether the server's major is lower than 17, which introduced `transaction_timeout`. */
  isBefore17: boolean;
}

/** The `options` of a startup packet. These settings override ALTER DATABASE and ALTER ROLE … SET. */
function startupOptions({ purpose, login, role, limits, settings: further, isBefore17 }: StartupSettings): string {
  const settings: Record<string, string> = {
    ...further,
    // No role can have the name "none". It means the role that logs in.
    role: role ?? 'none',
    // Only in a superuser's session could this setting change the role.
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
 * - `read` looks at a customer's database as a reader role and runs no code of the customer's.
 * - `load` runs a customer's code, as a loader role that owns nothing but what it loads.
 * - `admin` is a superuser in the database `postgres`, or in a database that is still empty.
 */
type SessionPurpose = 'read' | 'load' | 'admin';

interface SessionLimits {
  /** How long one statement may take; 0 for no limit. */
  statementMs: number;
  /** How long a statement may wait for a lock. */
  lockMs: number;
  /** How long the session may be idle, in a transaction or outside of one. 0 for no limit. */
  idleMs: number;
}

const hourMs = 3_600_000;
const defaultLimits: Record<SessionPurpose, SessionLimits> = {
  // A COPY lasts as long as its reader takes. A transaction keeps its snapshot while others read from it.
  read: { statementMs: 24 * hourMs, lockMs: 60_000, idleMs: 24 * hourMs },
  load: { statementMs: 24 * hourMs, lockMs: 60_000, idleMs: 24 * hourMs },
  admin: { statementMs: 60_000, lockMs: 20_000, idleMs: hourMs },
};

export interface SessionOptions {
  purpose: SessionPurpose;
  /** The role as which the session acts from its first statement on. When left out, the role that logs in. */
  role?: string | undefined;
  /** Further settings, which are fixed like the others, and set before `role` is. */
  settings?: Readonly<Record<string, string>>;
  limits?: Partial<SessionLimits>;
  caps?: Partial<MessageCaps>;
  applicationName?: string;
  /** When it aborts, the socket is destroyed, so that everything that runs on the session fails at once. */
  signal?: AbortSignal | undefined;
}

export interface Session {
  client: pg.Client;
  close(): Promise<void>;
}

/** The URL of the same login through the Unix socket in this folder. Its port names the socket. */
export function bySocket(url: string, folder: string): string {
  const changed = new URL(url);
  changed.searchParams.set('host', folder);
  return changed.href;
}

/**
 * The folder of the Unix socket that a URL names as `host`, else its host. Postgres' own clients read it in the same
 * way.
 */
export function hostOf(url: URL): string {
  return url.searchParams.get('host') ?? url.hostname;
}

/** The startup options of a session, for programs that open one themselves, such as pg_dump. */
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
 * An owner of a database can limit whole transactions from Postgres 17 on, with a setting that an older server refuses
 * in the startup packet. Only the server knows its version, so `open` is first tried as for a newer server.
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
 * Opens a connection that nothing else uses. The startup packet fixes its settings, because settings there override
 * those that the owner has given to the database and to its roles. A notice, an error or a result above `options.caps`
 * ends the connection with `message_too_large`.
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
  // Without a listener a broken connection would end the process. The user of the client sees the error in a query.
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

/**
 * Runs one statement whose result is not needed. With the extended protocol, Postgres refuses a text that contains two
 * statements.
 */
export async function runStatement(client: pg.ClientBase, text: string): Promise<void> {
  const query: pg.QueryConfig & { queryMode: 'extended' } = { text, queryMode: 'extended' };
  await client.query(query);
}
