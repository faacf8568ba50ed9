import { testPostgres } from '@drydock/postgres/testing/postgres';
import { testRedis } from '@drydock/testing/redis';
import type { QueueBackend } from '@drydock/testing/scope';
import { runMigrations } from 'bullmq';
import pg from 'pg';

export interface TestQueue {
  /** The QUEUE_URL for a process. */
  url: string;
  /** The pid of the test's Redis, to freeze or kill it; null on Postgres. */
  pid: number | null;
  close(): Promise<void>;
}

/** Opens a queue for one test on this backend: a Redis of its own, or a database with BullMQ's tables. */
export async function testQueue(backend: QueueBackend): Promise<TestQueue> {
  if (backend === 'redis') {
    const redis = await testRedis();
    if (redis === null) throw new Error('There is no Redis here; ask queueBackends() first');
    return redis;
  }
  const postgres = await testPostgres();
  const client = new pg.Client({ connectionString: postgres.url });
  await client.connect();
  try {
    await runMigrations(client);
  } finally {
    await client.end();
  }
  return { url: postgres.url, pid: null, close: () => postgres.close() };
}
