import mysql, { type Connection, type ConnectionOptions } from 'mysql2/promise';

/** Runs statements one after the other in a session of their own; gives the rows of the last one. */
export async function ask(login: ConnectionOptions, ...statements: readonly string[]): Promise<unknown[]> {
  const connection = await mysql.createConnection({ ...login, flags: ['-IGNORE_SPACE'] });
  try {
    let rows: unknown = [];
    for (const statement of statements) [rows] = await connection.query(statement);
    return Array.isArray(rows) ? rows : [];
  } finally {
    await closeQuietly(connection);
  }
}

/** The server may have gone. */
export async function closeQuietly(connection: Connection): Promise<void> {
  await connection.end().catch(() => undefined);
}
