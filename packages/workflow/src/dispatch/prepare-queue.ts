import { openRedis } from '@drydock/service/redis';
import { runMigrations } from 'bullmq';
import { Client } from 'pg';
import { messageOf } from '../definition/step-error';
import { isPostgresQueue, reconnectMs } from './queue';

/** How long Redis may take to answer, in milliseconds. It may be starting at the same time as this process. */
const answerMs = 5_000;

/**
 * Creates or upgrades BullMQ's tables if the queue is a Postgres database. A Redis only has to answer. Must have run
 * before any process uses the queue, because without a queue accepted work never begins. May be repeated. @throws with
 * the reason if there is no queue
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
  const client = openRedis(queueUrl, {
    commandTimeout: withinMs,
    maxRetriesPerRequest: null,
    retryStrategy: reconnectMs,
  });
  let trouble: unknown;
  client.on('error', (error) => {
    trouble = error;
  });
  try {
    await client.ping();
  } catch (error) {
    throw new Error(`Redis at QUEUE_URL does not answer: ${messageOf(trouble ?? error)}`, { cause: error });
  } finally {
    client.disconnect();
  }
}
