import pg from 'pg';

/** Values must read the same on every server: these decide how text COPY and row::text are written. */
const settings = [
  "search_path = ''",
  "client_encoding = 'UTF8'",
  "datestyle = 'ISO, YMD'",
  "intervalstyle = 'postgres'",
  "timezone = 'UTC'",
  "bytea_output = 'hex'",
  'extra_float_digits = 1',
  'xmloption = content',
  'row_security = off',
  'statement_timeout = 0',
  'idle_in_transaction_session_timeout = 0',
  "lock_timeout = '60s'",
  'synchronous_commit = off',
];

export interface Session {
  client: pg.Client;
  close(): Promise<void>;
}

/** A connection of its own with fixed settings. When `signal` aborts, the socket is destroyed, so that whatever runs on it fails at once. */
export async function openSession(url: string, signal?: AbortSignal): Promise<Session> {
  signal?.throwIfAborted();
  const client = new pg.Client({ connectionString: url, application_name: 'drydock pg-transfer', connectionTimeoutMillis: 10_000 });
  // Without a listener a broken connection would end the process; whoever uses the client sees the error in its query.
  client.on('error', () => undefined);
  const abort = (): void => {
    client.connection.stream.destroy(new Error('aborted'));
  };
  signal?.addEventListener('abort', abort, { once: true });
  const close = async (): Promise<void> => {
    signal?.removeEventListener('abort', abort);
    await client.end().catch(() => undefined);
  };
  try {
    await client.connect();
    for (const setting of settings) await client.query(`set ${setting}`);
    return { client, close };
  } catch (error) {
    await close();
    throw error;
  }
}

/** A read-only transaction that sees exactly what the exporting transaction sees. The id comes from Postgres. */
export async function openSnapshotSession(url: string, snapshotId: string, signal?: AbortSignal): Promise<Session> {
  const session = await openSession(url, signal);
  try {
    await session.client.query('begin isolation level repeatable read read only');
    await session.client.query(`set transaction snapshot ${session.client.escapeLiteral(snapshotId)}`);
    return session;
  } catch (error) {
    await session.close();
    throw error;
  }
}
