import type { Pool, PoolClient } from 'pg';
import type { Database, Sql } from './sql';

const sqlOf = (client: Pick<PoolClient, 'query'> | Pool): Sql => ({
  async query<Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    const result = await client.query(text, [...values]);
    return result.rows as Row[];
  },
});

/** A pg pool as a {@link Database}; a connection whose ROLLBACK fails is discarded. */
export function pgDatabase(pool: Pool): Database<PoolClient> {
  const root = sqlOf(pool);
  return {
    sql: (tx) => (tx === undefined ? root : sqlOf(tx)),
    async transaction(work) {
      const client = await pool.connect();
      let broken: Error | undefined;
      try {
        await client.query('BEGIN');
        const result = await work(client);
        await client.query('COMMIT');
        return result;
      } catch (error) {
        await client.query('ROLLBACK').catch((cause: unknown) => {
          broken = cause instanceof Error ? cause : new Error(String(cause));
        });
        throw error;
      } finally {
        client.release(broken);
      }
    },
  };
}
