import { scaled } from '@drydock/process';
import type { Pool, PoolClient, PoolConfig } from 'pg';
import type { Database, Sql } from './sql';

const sqlOf = (client: Pick<PoolClient, 'query'> | Pool): Sql => ({
  async query<Row>(text: string, values: readonly unknown[] = []): Promise<Row[]> {
    const result = await client.query(text, [...values]);
    return result.rows as Row[];
  },
});

/** Makes a {@link Database} of a pg pool. A connection whose ROLLBACK fails is discarded. */
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

export interface PoolLimits {
  /** The most connections. Default 10. */
  max?: number;
  /** The name under which Postgres shows the connections of the pool. */
  applicationName?: string;
}

/**
 * The settings of all pools. By default Postgres waits for ever, so a frozen server would hold each request until the
 * client stops waiting. `lockTimeout` is the shortest, so that a locked row can be told from a slow statement.
 */
export function poolConfig(connectionString: string, limits: PoolLimits = {}): PoolConfig {
  const { hostname, port, pathname } = new URL(connectionString);
  return {
    connectionString,
    // The host and the port are also given separately, because metrics name the pool by them.
    host: hostname,
    port: port === '' ? 5432 : Number(port),
    database: decodeURIComponent(pathname.slice(1)),
    max: limits.max ?? 10,
    connectionTimeoutMillis: scaled(1_500),
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    query_timeout: scaled(6_000),
    statement_timeout: scaled(5_000),
    lock_timeout: scaled(2_000),
    idle_in_transaction_session_timeout: scaled(10_000),
    ...(limits.applicationName === undefined ? {} : { application_name: limits.applicationName }),
  };
}
