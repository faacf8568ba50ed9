/**
 * @processes
 */
import { missingTools } from '@drydock/process/testing/needs';
import { testRedis } from '@drydock/testing/redis';
import { startRedisCluster, startRedisSentinel } from '@drydock/testing/redis-shapes';
import { startTcpFaultProxy } from '@drydock/testing/tcp-fault-proxy';
import { until } from '@drydock/testing/wait';
import { Redis } from 'ioredis';
import { uuidv7 } from 'uuidv7';
import type { Log } from '../definition/definition';
import { openQueue, type WorkflowJob } from './queue';
import { openWorker } from './worker';

const ignore = (): void => undefined;
const log: Log = { debug: ignore, info: ignore, warn: ignore, error: ignore };

/** Opens a queue that adds jobs, and its worker. */
function openBoth(queueUrl: string) {
  const answered: string[] = [];
  const address = { queueUrl, queueName: 'boxes', log };
  const handle = async ({ workflowId }: WorkflowJob) => {
    answered.push(workflowId);
    return 'succeeded' as const;
  };
  const worker = openWorker({ ...address, concurrency: 2, handle, delivered: ignore });
  const queue = openQueue(address);
  return {
    /**
     * Enqueues the same job again and again until it is delivered, because a job may be lost. Resolves with the number
     * of attempts.
     */
    enqueue: async (): Promise<number> => {
      const workflowId = uuidv7();
      let attempts = 0;
      const isHeard = async (): Promise<boolean> => {
        attempts += 1;
        await queue.enqueue('dawdle', { workflowId, orgId: uuidv7() }).catch(ignore);
        return answered.includes(workflowId);
      };
      await until(isHeard, { timeoutMs: 40_000, everyMs: 200, what: 'a job that is heard' });
      return attempts;
    },
    close: async () => {
      await queue.close();
      await worker.close();
    },
  };
}

async function startServer() {
  const server = await testRedis();
  if (server === null) throw new Error('there is no Redis here');
  const address = new URL(server.url);
  return { address, admin: new Redis(server.url), close: server.close };
}

const lacking = missingTools('redis');

(lacking === '' ? describe : describe.skip)(`the queue${lacking}`, () => {
  it('works over a Redis Cluster, whose nodes each hold a part of the keys', async () => {
    const cluster = await startRedisCluster();
    const both = openBoth(cluster.url);
    expect(await both.enqueue()).toBeGreaterThan(0);
    await both.close();
    await cluster.close();
  });

  it('follows Sentinel to the replica when the master is killed', async () => {
    const sentinel = await startRedisSentinel();
    const both = openBoth(sentinel.url);
    await both.enqueue();
    sentinel.killMaster();
    expect(await both.enqueue()).toBeGreaterThan(0);
    await both.close();
    await sentinel.close();
  });

  it('follows the address of a Redis to another server, although the old one lives on as a replica and keeps its connections', async () => {
    const servers = [await startServer(), await startServer()] as const;
    const [first, second] = servers;
    await second.admin.config('SET', 'requirepass', first.address.password);
    const leadsTo = { host: '127.0.0.1', port: Number(first.address.port) };
    const name = await startTcpFaultProxy(leadsTo);
    const both = openBoth(`redis://:${first.address.password}@127.0.0.1:${name.port}`);
    await both.enqueue();
    leadsTo.port = Number(second.address.port);
    await first.admin.replicaof('127.0.0.1', leadsTo.port);
    expect(await both.enqueue()).toBeGreaterThan(0);
    await both.close();
    await name.close();
    for (const { admin, close } of servers) {
      admin.disconnect();
      await close();
    }
  });
});
