import { findRedis } from '@drydock/embedded/redis';
import { startRedisCluster, startRedisSentinel } from '@drydock/test-kit/redis-shapes';
import { until } from '@drydock/test-kit/wait';
import { uuidv7 } from 'uuidv7';
import { consume } from './consumer';
import type { Log } from './log';
import { openQueue } from './queue';

const ignore = (): void => undefined;
const log: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** A queue on both sides of it. */
function openBoth(queueUrl: string) {
  const answered: string[] = [];
  const address = { queueUrl, queueName: 'boxes', log };
  const answer = async (workflowId: string) => {
    answered.push(workflowId);
    return 'succeeded' as const;
  };
  const consumer = consume({ ...address, concurrency: 2, answer, delivered: ignore });
  const queue = openQueue(address);
  return {
    /** Rings until it is heard: a ring may be lost, as the sweep knows. Resolves with how often that was. */
    ring: async (): Promise<number> => {
      const workflowId = uuidv7();
      let rings = 0;
      const isHeard = async (): Promise<boolean> => {
        rings += 1;
        await queue.ring({ workflowId }, rings).catch(ignore);
        return answered.includes(workflowId);
      };
      await until(isHeard, { timeoutMs: 40_000, everyMs: 200, what: 'a ring that is heard' });
      return rings;
    },
    close: async () => {
      await queue.close();
      await consumer.close();
    },
  };
}

(findRedis() === null ? describe.skip : describe)('the queue', () => {
  it('works over a Redis Cluster, whose nodes each hold a part of the keys', async () => {
    const cluster = await startRedisCluster();
    const both = openBoth(cluster.url);
    expect(await both.ring()).toBeGreaterThan(0);
    await both.close();
    await cluster.close();
  });

  it('follows Sentinel to the replica when the master is killed', async () => {
    const sentinel = await startRedisSentinel();
    const both = openBoth(sentinel.url);
    await both.ring();
    sentinel.killMaster();
    expect(await both.ring()).toBeGreaterThan(0);
    await both.close();
    await sentinel.close();
  });
});
