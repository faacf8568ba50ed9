import { createPostgresBackend, type Processor, Queue, Worker } from 'bullmq';
import { Redis } from 'ioredis';

/**
 * Returns, for each sample, the milliseconds from BullMQ's `add` to the start of the processor. Adds one job at a time.
 * The queue is in Redis if the URL begins with `redis`, and otherwise in Postgres.
 */
export async function rawAddToStart(queueUrl: string, samples: number): Promise<number[]> {
  let arrived: () => void = () => {};
  const processor: Processor = async () => arrived();
  const { queue, worker, close } = queueUrl.startsWith('redis')
    ? onRedis(queueUrl, processor)
    : onPostgres(queueUrl, processor);
  await worker.waitUntilReady();
  const taken: number[] = [];
  for (let number = -10; number < samples; number += 1) {
    const done = new Promise<void>((resolve) => {
      arrived = resolve;
    });
    const startedMs = performance.now();
    await queue.add('job', {});
    await done;
    if (number >= 0) taken.push(performance.now() - startedMs);
  }
  await close();
  return taken;
}

function onRedis(url: string, processor: Processor) {
  const connection = new Redis(url, { maxRetriesPerRequest: null });
  const queue = new Queue('raw', { connection });
  const worker = new Worker('raw', processor, { connection: connection.duplicate() });
  const close = async (): Promise<void> => {
    await worker.close();
    await queue.close();
    connection.disconnect();
  };
  return { queue, worker, close };
}

function onPostgres(url: string, processor: Processor) {
  const connection = { connectionString: url };
  const queue = new Queue('raw', { connection }, createPostgresBackend);
  const worker = new Worker('raw', processor, { connection }, createPostgresBackend);
  const close = async (): Promise<void> => {
    await worker.close();
    await queue.close();
  };
  return { queue, worker, close };
}
