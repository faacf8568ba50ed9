import { scaled } from '@drydock/process';
import { metrics } from '@opentelemetry/api';
import pg, { type Pool, type PoolClient } from 'pg';
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
 * Opens a pool and counts its connections in metrics. Every wait has a limit. Otherwise a frozen server would hold each
 * request until the client stops waiting. `lock_timeout` is shorter than `statement_timeout`, so that a locked row can
 * be told from a slow statement.
 */
export function openPool(connectionString: string, limits: PoolLimits = {}): Pool {
  const pool = new pg.Pool({
    connectionString,
    max: limits.max ?? 10,
    connectionTimeoutMillis: scaled(1_500),
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    query_timeout: scaled(6_000),
    statement_timeout: scaled(5_000),
    lock_timeout: scaled(2_000),
    idle_in_transaction_session_timeout: scaled(10_000),
    ...(limits.applicationName === undefined ? {} : { application_name: limits.applicationName }),
  });
  openPools.set(pool, decodeURIComponent(new URL(connectionString).pathname.slice(1)));
  return pool;
}

/** The open pools of this process, each with the name of its database. */
const openPools = new Map<Pool, string>();

/*
 * Connections are counted when metrics are read. The instrumentation of pg would count at each statement, at a cost of
 * 24 µs for each request.
 */
const meter = metrics.getMeter('@drydock/service');
const connections = meter.createObservableUpDownCounter('db.client.connection.count', {
  unit: '{connection}',
  description: 'The number of connections that are currently in the state described by the state attribute',
});
const waiting = meter.createObservableUpDownCounter('db.client.connection.pending_requests', {
  unit: '{request}',
  description: 'The number of current pending requests for an open connection',
});
meter.addBatchObservableCallback(
  (result) => {
    for (const [pool, name] of openPools) {
      if (pool.ended) {
        openPools.delete(pool);
        continue;
      }
      const named = { 'db.client.connection.pool.name': name };
      const observe = (state: string, count: number): void =>
        result.observe(connections, count, { ...named, 'db.client.connection.state': state });
      observe('used', pool.totalCount - pool.idleCount);
      observe('idle', pool.idleCount);
      result.observe(waiting, pool.waitingCount, named);
    }
  },
  [connections, waiting],
);
