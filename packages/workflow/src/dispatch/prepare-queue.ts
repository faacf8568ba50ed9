import { openRedis } from '@drydock/service/redis/open-redis';
import { runMigrations } from 'bullmq';
import { Client } from 'pg';
import { messageOf } from '../definition/step-error';
import { isPostgresQueue, reconnectMs } from './queue';

/** A Redis of somebody else's may be starting too. */
const answerMs = 5_000;

/**
 * Makes or upgrades BullMQ's tables when the queue is a Postgres database; a Redis only has to be there. Idempotent; run it before any process uses the queue: they
 * accept work without one, and none of it would be begun.
 * @throws saying why when there is no queue
 */
export async function prepareQueue(queueUrl: string, redisAnswerMs = answerMs): Promise<void> {
  if (!isPostgresQueue(queueUrl)) return assertAnswers(queueUrl, redisAnswerMs);
  const client = new Client({ connectionString: queueUrl });
  await client.connect();
  try {
    await runMigrations(client);
  } finally {
    await client.end();
  }
}

async function assertAnswers(queueUrl: string, withinMs: number): Promise<void> {
  const client = openRedis(queueUrl, { commandTimeout: withinMs, maxRetriesPerRequest: null, retryStrategy: reconnectMs });
  let trouble: unknown;
  client.on('error', (error) => {
    trouble = error;
  });
  try {
    await client.ping();
  } catch (error) {
    throw new Error(`The Redis of the queue does not handle: ${messageOf(trouble ?? error)}`, { cause: error });
  } finally {
    client.disconnect();
  }
}
