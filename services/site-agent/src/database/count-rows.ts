import type { CountRowsSpec } from '@drydock/agent/site/site-jobs.protocol';
import pg from 'pg';

const undefinedTable = '42P01';
const answerMs = 30_000;

/** Rows of a table as its owner counts them; null when there is no such table. */
export async function countRows(connectionString: string, { schema, name }: CountRowsSpec): Promise<{ rows: number | null }> {
  const connection = new pg.Client({ connectionString, connectionTimeoutMillis: answerMs, statement_timeout: answerMs });
  connection.on('error', () => undefined);
  await connection.connect();
  try {
    const table = `${connection.escapeIdentifier(schema)}.${connection.escapeIdentifier(name)}`;
    const { rows } = await connection.query<{ count: string }>(`SELECT pg_catalog.count(*) FROM ONLY ${table}`);
    return { rows: Number(rows[0]?.count ?? 0) };
  } catch (error) {
    if (error instanceof pg.DatabaseError && error.code === undefinedTable) return { rows: null };
    throw error;
  } finally {
    await connection.end();
  }
}
