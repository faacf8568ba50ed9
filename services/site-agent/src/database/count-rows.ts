import type { CountRowsSpec } from '@drydock/agent/site/site-jobs.protocol';
import { createConnection, escapeId } from 'mysql2/promise';
import pg from 'pg';

const answerMs = 30_000;

/** The codes of Postgres and MariaDB for a table that does not exist. */
const unknownTable: ReadonlySet<string> = new Set(['42P01', 'ER_NO_SUCH_TABLE', 'ER_BAD_DB_ERROR']);

/** The number of rows of a table as its owner counts them; null if the table does not exist. */
export async function countRows(url: string, table: CountRowsSpec): Promise<{ rows: number | null }> {
  try {
    return { rows: await (url.startsWith('mysql:') ? countInMariadb(url, table) : countInPostgres(url, table)) };
  } catch (error) {
    if (error instanceof Error && 'code' in error && unknownTable.has(String(error.code))) return { rows: null };
    throw error;
  }
}

async function countInPostgres(connectionString: string, { schema, name }: CountRowsSpec): Promise<number> {
  const connection = new pg.Client({
    connectionString,
    connectionTimeoutMillis: answerMs,
    statement_timeout: answerMs,
  });
  connection.on('error', () => undefined);
  await connection.connect();
  try {
    const table = `${connection.escapeIdentifier(schema)}.${connection.escapeIdentifier(name)}`;
    const { rows } = await connection.query<{ count: string }>(`SELECT pg_catalog.count(*) FROM ONLY ${table}`);
    return Number(rows[0]?.count ?? 0);
  } finally {
    await connection.end();
  }
}

async function countInMariadb(uri: string, { schema, name }: CountRowsSpec): Promise<number> {
  const connection = await createConnection({ uri, connectTimeout: answerMs, rowsAsArray: true });
  connection.on('error', () => undefined);
  try {
    const sql = `SELECT count(*) FROM ${escapeId(schema, true)}.${escapeId(name, true)}`;
    const [rows] = await connection.query({ sql, timeout: answerMs });
    const [[count] = []] = rows as unknown[][];
    return Number(count);
  } finally {
    connection.destroy();
  }
}
