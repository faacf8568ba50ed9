import { testPostgres } from '@drydock/postgres/testing/postgres';
import { testRedis } from '@drydock/testing/redis';
import type { QueueBackend } from '@drydock/testing/scope';
import { runMigrations } from 'bullmq';
import pg from 'pg';

export interface TestQueue {
  /** The QUEUE_URL for a process. */
  url: string;
  /** Redis' own process, to freeze or kill; null on Postgres. */
  pid: number | null;
  close(): Promise<void>;
}

/** A queue of the test's own on this backend: a private Redis, or a database with BullMQ's tables in it. */
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
