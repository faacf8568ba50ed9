import type pg from 'pg';
import { CappedSocket } from './capped-socket';
import { defaultCaps, type MessageCaps } from './message-meter';
import { ScramClient } from './scram-client';
import { startupOptions } from './startup-options';

/**
 * The purpose of a session:
 * - `read` looks at a customer's database as a reader role and runs no code of the customer's.
 * - `load` runs a customer's code, as a loader role that owns nothing but what it loads.
 * - `admin` is a superuser in the database `postgres`, or in a database that is still empty.
 */
export type SessionPurpose = 'read' | 'load' | 'admin';

export interface SessionLimits {
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
  /** Fixed like the others, and set before `role` is. */
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
 * From 17 on, the owner of a database can limit whole transactions with a setting that an older server refuses in the
 * startup packet. Only the server knows its version, so `open` is first tried as for a newer server.
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
