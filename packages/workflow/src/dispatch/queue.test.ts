/**
 * @processes
 */
import { mkdtempSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startRedis } from '@drydock/process';
import { missingTools } from '@drydock/process/testing/needs';
import { type QueueBackend, queueBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { createPostgresBackend, Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import { dawdle, workflow } from '../testing/refill-box';
import { openWorld, type World } from '../testing/world';
import { isPostgresQueue, openQueue, queuePrefix } from './queue';

/** The test's direct access to the queue, to add jobs that our code never adds. */
function rawQueue(url: string): {
  queue: Pick<Queue, 'add' | 'getWaitingCount' | 'getActiveCount' | 'getJobs'>;
  close(): Promise<void>;
} {
  const common = { prefix: queuePrefix('boxes') };
  if (isPostgresQueue(url)) {
    const queue = new Queue('boxes', { ...common, connection: { connectionString: url } }, createPostgresBackend);
    return { queue, close: () => queue.close() };
  }
  const client = new Redis(url, { maxRetriesPerRequest: null });
  const queue = new Queue('boxes', { ...common, connection: client });
  return {
    queue,
    close: async () => {
      await queue.close();
      client.disconnect();
    },
  };
}

describe.each(queueBackends())('jobs only say where to look over %s', (backend: QueueBackend) => {
  let world: World;
  beforeEach(async () => {
    world = await openWorld(backend);
  });
  afterEach(() => world.close());
  const succeeded = (workflowId: string) => until(async () => (await world.status(workflowId)) === 'succeeded');

  it('runs once a workflow that is enqueued twenty times, even after its end', async () => {
    const { workflowId } = await world.start({ kind: 'dawdle', input: { ms: 300 } });
    const queue = openQueue({ queueUrl: world.queue.url, queueName: 'boxes', log: world.log });
    world.engine([dawdle]);
    const enqueueTen = () =>
      Promise.all(Array.from({ length: 10 }, () => queue.enqueue('dawdle', { workflowId, orgId: world.orgId })));
    await until(() => enqueueTen().then(() => true));
    await succeeded(workflowId);
    await enqueueTen();
    await until(async () => (await queue.waiting()) === 0);
    await queue.close();
    const { rows } = await world.pool.query('SELECT attempts FROM workflow_step WHERE workflow_id = $1', [workflowId]);
    expect(rows).toEqual([{ attempts: 1 }]);
    expect(await world.status(workflowId)).toBe('succeeded');
  });

  it('names a job as its workflow, and keeps it when it has run, so that a dashboard shows what ran', async () => {
    world.engine([dawdle]);
    const { workflowId } = await world.start({ kind: 'dawdle', input: { ms: 1 } });
    await succeeded(workflowId);
    const { queue, close } = rawQueue(world.queue.url);
    const finished = async () => (await queue.getJobs(['completed'])).filter(({ data }) => data.orgId === world.orgId);
    await until(async () => (await finished()).length > 0);
    const jobs = (await finished()).map(({ name, data }) => ({ name, workflowId: data.workflowId }));
    await close();
    expect(jobs).toContainEqual({ name: 'dawdle', workflowId });
  });

  it('ignores and logs jobs of another shape', async () => {
    world.engine([dawdle]);
    const { queue, close } = rawQueue(world.queue.url);
    const data = [
      { opId: "x'; drop table workflow" },
      { workflowId: 'not-a-uuid' },
      'text',
      7,
      { workflowId: uuidv7() },
      { workflowId: uuidv7(), orgId: uuidv7(), more: 1 },
      { workflowId: uuidv7(), orgId: uuidv7(), traceparent: 'x'.repeat(5_000) },
    ];
    for (const [number, garbage] of data.entries()) await queue.add('run', garbage, { jobId: `garbage-${number}` });
    await queue.add(
      'ring',
      { workflowId: uuidv7(), orgId: uuidv7() },
      { jobId: 'unknown-workflow', telemetry: { metadata: '{"traceparent": not json' } },
    );
    const { workflowId } = await world.start({ kind: 'dawdle', input: { ms: 1 } });
    await succeeded(workflowId);
    await until(async () => (await queue.getWaitingCount()) + (await queue.getActiveCount()) === 0);
    await close();
    const ignored = world.lines.filter(({ message }) => message === 'a job of another shape was ignored');
    expect(ignored).toHaveLength(data.length);
  });
});

const lacking = missingTools('redis');

(lacking === '' ? describe : describe.skip)(`a Redis that forgets${lacking}`, () => {
  let world: World;
  beforeEach(async () => {
    world = await openWorld('redis');
  });
  afterEach(() => world.close());
  const allSucceeded = async (ids: readonly string[]) =>
    until(
      async () => (await Promise.all(ids.map((id) => world.status(id)))).every((status) => status === 'succeeded'),
      {
        timeoutMs: 60_000,
      },
    );
  const startMany = (count: number) =>
    Promise.all(
      Array.from({ length: count }, () =>
        world.start({ kind: 'dawdle', input: { ms: 100 } }).then(({ workflowId }) => workflowId),
      ),
    );

  it('costs only time when FLUSHALL removes its jobs again and again', async () => {
    const held: (() => void)[] = [];
    let isOpen = false;
    const gated = workflow({ kind: 'gated', input: z.object({}) })
      .step('wait', { run: () => (isOpen ? Promise.resolve() : new Promise<void>((resolve) => held.push(resolve))) })
      .build();
    world.engine([gated], { concurrency: 2 });
    const redis = new Redis(world.queue.url);
    const ids = await Promise.all(
      Array.from({ length: 20 }, async () => (await world.start({ kind: 'gated' })).workflowId),
    );
    for (let round = 0; round < 5; round += 1) {
      await until(() => held.length > 0, { timeoutMs: 60_000 });
      await redis.flushall();
      for (const letGo of held.splice(0)) letGo();
    }
    isOpen = true;
    for (const letGo of held) letGo();
    await allSucceeded(ids);
    redis.disconnect();
    const { rows } = await world.pool.query('SELECT max(attempts) AS attempts FROM workflow_step');
    expect(rows).toEqual([{ attempts: 1 }]);
  });

  it('costs only time when it is killed and starts again empty, and work is accepted meanwhile', async () => {
    world.engine([dawdle], { concurrency: 2 });
    const dispatcher = world.dispatcher();
    const before = await startMany(6);
    if (world.queue.pid === null) throw new Error('no pid');
    process.kill(world.queue.pid, 'SIGKILL');
    const during = await startMany(6);
    // `enqueue` returns no promise, so no request waits for an unreachable queue.
    expect(during.map((id) => dispatcher.enqueue({ workflowId: id, orgId: world.orgId, kind: 'dawdle' }))).toEqual(
      during.map(() => undefined),
    );
    const folder = mkdtempSync(path.join(tmpdir(), 'drydock-test-redis-again-'));
    // The new Redis has the same address and password, but no content.
    writeFileSync(path.join(folder, 'password'), new URL(world.queue.url).password, { mode: 0o600 });
    const again = await startRedis({ folder, port: Number(new URL(world.queue.url).port), isEphemeral: true });
    try {
      await allSucceeded([...before, ...during]);
    } finally {
      await world.close();
      await again.stop();
      world = await openWorld('redis');
    }
  });
});
