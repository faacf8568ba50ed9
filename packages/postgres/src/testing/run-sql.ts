import pg from 'pg';

/** A URL, or what pg takes. */
export type Target = string | pg.ClientConfig;

/** Work on a connection of its own. When the server ends it, that is no error of the test. */
export async function withClient<T>(target: Target, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = new pg.Client(target);
  client.on('error', () => undefined);
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}

/** The rows of one statement. For several statements, nothing. */
export const runSql = <Row>(target: Target, sql: string, values?: unknown[]): Promise<Row[]> =>
  withClient(target, async (client) => {
    const answer = values === undefined ? await client.query(sql) : await client.query(sql, values);
    return answer.rows ?? [];
  });
