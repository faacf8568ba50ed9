import { runMigrations } from 'bullmq';
import { Client } from 'pg';
import { isPostgresQueue } from './queue';

/** Makes or upgrades BullMQ's tables when the queue is a Postgres database; a Redis needs nothing. Idempotent; run it before any process uses the queue. */
export async function prepareQueue(queueUrl: string): Promise<void> {
  if (!isPostgresQueue(queueUrl)) return;
  const client = new Client({ connectionString: queueUrl });
  await client.connect();
  try {
    await runMigrations(client);
  } finally {
    await client.end();
  }
}
