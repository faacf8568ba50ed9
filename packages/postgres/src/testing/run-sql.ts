import pg from 'pg';

export type Target = string | pg.ClientConfig;

/** Runs work on a connection of its own. A connection that the server ends does not end the process. */
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

/** Runs a statement and returns its rows. Several statements return no rows. */
export const runSql = <Row>(target: Target, sql: string, values?: unknown[]): Promise<Row[]> =>
  withClient(target, async (client) => {
    const answer = values === undefined ? await client.query(sql) : await client.query(sql, values);
    return answer.rows ?? [];
  });
