/**
 * @processes
 */
import { missingTools } from '@drydock/process/testing/needs';
import { type TestQueue, testQueue } from '@drydock/service/testing/test-queue';
import { testRedis } from '@drydock/testing/redis';
import { startTcpFaultProxy, type TcpFaultProxy } from '@drydock/testing/tcp-fault-proxy';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import type { Log } from '../definition/definition';
import { openWorld } from '../testing/world';
import { type JobQueue, openQueue, prepareQueue, type WorkflowJob } from './queue';
import { openWorker } from './worker';

let behind: TestQueue;
let proxy: TcpFaultProxy;
const closing: (() => Promise<void>)[] = [];
const warnings: string[] = [];
const ignore = (): void => undefined;
const log: Log = {
  debug: ignore,
  info: ignore,
  warn: (_fields, message) => void warnings.push(message),
  error: ignore,
};

beforeAll(async () => {
  behind = await testQueue('postgres');
  const { hostname, port } = new URL(behind.url);
  proxy = await startTcpFaultProxy({ host: hostname, port: Number(port) });
});
afterAll(async () => {
  for (const close of closing.reverse()) await close();
  await proxy.close();
  await behind.close();
});

const scale = process.env['DRYDOCK_TIMEOUT_SCALE'];
// This suite tests the time-outs of production, so it does not scale them. Additional time-outs on a busy machine fail
// no test.
beforeAll(() => {
  process.env['DRYDOCK_TIMEOUT_SCALE'] = '1';
});
afterAll(() => {
  if (scale === undefined) delete process.env['DRYDOCK_TIMEOUT_SCALE'];
  else process.env['DRYDOCK_TIMEOUT_SCALE'] = scale;
});

/** Milliseconds for which the queue does not answer: longer than a client waits for a connection. */
const awayMs = 2_500;
const away = () => new Promise((resolve) => setTimeout(resolve, awayMs));

it('a worker and an API that start while Postgres does not answer, work once it does, as after every later silence, and never spin', async () => {
  const queueUrl = behind.url.replace(/:\d+\//, `:${proxy.port}/`);
  const answered: string[] = [];
  const startedMs = performance.now();
  proxy.faults.isBlackhole = true;
  const handle = async ({ workflowId }: WorkflowJob) => {
    answered.push(workflowId);
    return 'succeeded' as const;
  };
  const worker = openWorker({ queueUrl, queueName: 'boxes', log, concurrency: 4, handle, delivered: ignore });
  const queue: JobQueue = openQueue({ queueUrl, queueName: 'boxes', log });
  closing.push(
    () => queue.close(),
    () => worker.close(),
  );
  for (let silence = 0; silence < 2; silence += 1) {
    await away();
    proxy.faults.isBlackhole = false;
    const workflowId = uuidv7();
    const isRung = () =>
      queue.enqueue('dawdle', { workflowId, orgId: uuidv7() }).then(
        () => true,
        () => false,
      );
    await until(isRung, { timeoutMs: 60_000, everyMs: 100, what: 'a ring' });
    await until(() => answered.includes(workflowId), { timeoutMs: 60_000, what: 'an answer' });
    proxy.faults.isBlackhole = true;
    proxy.reset();
  }
  await away();
  proxy.faults.isBlackhole = false;
  // A few warnings a second are fine. A loop without pauses would log far more.
  expect(warnings.length).toBeLessThan(60 + (performance.now() - startedMs) / 200);
});

it('a Redis that cannot be reached is reported at the start with the reason and without its password', async () => {
  const telling = prepareQueue('redis://:letmein@127.0.0.1:1', 1_000).catch(String);
  await expect(telling).resolves.toMatch(/Redis at QUEUE_URL does not answer: .*ECONNREFUSED 127\.0\.0\.1:1$/);
  await expect(prepareQueue('http://127.0.0.1:1')).rejects.toThrow('redis://');
});

const lacking = missingTools('redis');

(lacking === '' ? describe : describe.skip)(`a worker on a Redis${lacking}`, () => {
  it('is not ready while Redis is frozen, although Redis answered a moment ago', async () => {
    const redis = await testRedis();
    if (redis === null) throw new Error('there is no Redis');
    const world = await openWorld('postgres');
    const engine = world.engine([], { queueUrl: redis.url });
    try {
      const isReady = () =>
        engine.checkQueue().then(
          () => true,
          () => false,
        );
      await until(isReady, { what: 'the queue' });
      process.kill(redis.pid, 'SIGSTOP');
      expect(await isReady()).toBe(false);
      process.kill(redis.pid, 'SIGCONT');
      await until(isReady, { what: 'the queue again' });
    } finally {
      await world.close();
      await redis.close();
    }
  });
});
