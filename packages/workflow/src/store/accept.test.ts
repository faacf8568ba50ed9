import { queueBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import { openQueue } from '../dispatch/queue';
import { firstOrg, takeDueWorkflows } from '../dispatch/sweep.store';
import { dawdle, workflow } from '../testing/refill-box';
import { openWorld, type World } from '../testing/world';
import { createListener } from './listener';
import { listWorkflows, readWorkflow } from './read-workflow';
import { saveSchedule } from './schedules';
import { waitForStep, watchWorkflow } from './watch-workflow';

const [backend = 'postgres'] = queueBackends();

describe('accepting, waiting and watching', () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld(backend);
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());
  const sql = () => world.database.sql();

  it('accepts one of 50 concurrent starts on a resource and names it to the others', async () => {
    const results = await Promise.all(
      Array.from({ length: 50 }, () => world.start({ kind: 'dawdle', resourceKey: 'box:1' })),
    );
    const winners = results.filter(({ started }) => started);
    expect(winners).toHaveLength(1);
    expect(new Set(results.map(({ workflowId }) => workflowId)).size).toBe(1);
    expect(results.filter((result) => !result.started && result.status === 'queued')).toHaveLength(49);
  });

  it('refuses an input that the definition refuses, and a start whose transaction is rolled back never was', async () => {
    await expect(world.start({ kind: 'dawdle', definition: dawdle, input: { ms: 'soon' } })).rejects.toThrow(
      z.ZodError,
    );
    await expect(world.start({ kind: 'dawdle', orgId: 'nobody' })).rejects.toThrow(z.ZodError);
    const { rows } = await world.pool.query('SELECT count(*)::int AS count FROM workflow');
    expect(rows).toEqual([{ count: 0 }]);
  });

  it('cancels what nobody claimed by its start_by, once, and unlocks the resource', async () => {
    const { workflowId } = await world.start({
      kind: 'dawdle',
      resourceKey: 'box:2',
      startBy: new Date(Date.now() + 300),
    });
    const settled: string[] = [];
    const onFailed = async (_tx: unknown, _run: unknown, { code }: { code: string }) => void settled.push(code);
    const waits = await Promise.all(
      [1, 2].map(() => waitForStep(world.database, workflowId, 'dawdle', 60_000, { onFailed })),
    );
    expect(waits).toEqual([{ state: 'cancelled' }, { state: 'cancelled' }]);
    expect(settled).toEqual(['start_by_passed']);
    world.engine([dawdle]);
    const next = await world.start({ kind: 'dawdle', resourceKey: 'box:2', input: { ms: 1 } });
    await until(async () => (await world.status(next.workflowId)) === 'succeeded');
    expect(await world.status(workflowId)).toBe('failed');
  });

  it('has the sweep cancel too, with the hook of the definition', async () => {
    const settled: string[] = [];
    const late = workflow({ kind: 'late', input: z.object({}) })
      .step('never', { run: async () => void settled.push('ran') })
      .onEnd({ failed: async (_tx, _run, { code }) => void settled.push(code) })
      .build();
    const { workflowId } = await world.start({ kind: 'late', startBy: new Date(Date.now() - 1_000) });
    world.engine([late]);
    await until(async () => (await world.status(workflowId)) === 'failed');
    expect(settled).toEqual(['start_by_passed']);
  });

  it('begins work that a request waits for although every slot is taken, whether its job arrived or was lost', async () => {
    world.engine([dawdle], { concurrency: 1 });
    const long = await world.start({ kind: 'dawdle', input: { ms: 600_000 } });
    const usual = await world.start({ kind: 'dawdle', input: { ms: 1 } });
    await until(async () => (await world.status(long.workflowId)) === 'running');
    const awaited = async () =>
      (await world.start({ kind: 'dawdle', input: { ms: 1 }, startBy: new Date(Date.now() + 120_000) })).workflowId;
    const lost = await awaited();
    await until(async () => (await world.status(lost)) === 'succeeded');
    const enqueued = await awaited();
    world.dispatcher().enqueue({ workflowId: enqueued, orgId: world.orgId, kind: 'dawdle' }, 'interactive');
    await until(async () => (await world.status(enqueued)) === 'succeeded');
    expect(await world.status(usual.workflowId)).toBe('queued');
  });

  it('waits for a step and gives its output, or says that it is still to come', async () => {
    const { workflowId } = await world.start({ kind: 'dawdle', input: { ms: 50 } });
    expect(await waitForStep(world.database, workflowId, 'dawdle', 60)).toEqual({ state: 'pending', claimed: false });
    const listener = createListener({ connectionString: world.databaseUrl, log: world.log });
    world.engine([dawdle], { listener });
    expect(await waitForStep(world.database, workflowId, 'dawdle', 60_000, { listener })).toEqual({
      state: 'succeeded',
      output: { pid: process.pid },
    });
    await listener.close();
  });

  it('shows versions to a watcher, and only newer ones to a watcher that reconnects', async () => {
    let letGo: (() => void) | undefined;
    const held = new Promise<void>((resolve) => {
      letGo = resolve;
    });
    const gated = workflow({ kind: 'gated', input: z.object({}) })
      .step('wait', { run: () => held })
      .build();
    world.engine([gated]);
    const { workflowId } = await world.start({ kind: 'gated' });
    const seen: number[] = [];
    for await (const { version, view } of watchWorkflow(sql(), workflowId)) {
      seen.push(version);
      if (view.status === 'running') break;
    }
    letGo?.();
    const resumed: string[] = [];
    for await (const { version, view } of watchWorkflow(sql(), workflowId, { afterVersion: seen.at(-1) ?? 0 })) {
      expect(version).toBeGreaterThan(seen.at(-1) ?? 0);
      resumed.push(view.status);
    }
    expect(resumed.at(-1)).toBe('succeeded');
    for await (const _ of watchWorkflow(sql(), workflowId, { afterVersion: 1_000 }))
      throw new Error('nothing is newer');
  });

  it('lists newest first by pages, within the organisation, mode and subject only', async () => {
    const subject = { type: 'box', id: uuidv7() };
    const ids: string[] = [];
    for (let number = 0; number < 3; number += 1)
      ids.unshift((await world.start({ kind: 'dawdle', subject, resourceKey: `${number}` })).workflowId);
    const scope = { orgId: world.orgId, mode: 'live' as const, subject };
    const first = await listWorkflows(sql(), scope, { limit: 2 });
    expect([first.items.map(({ id }) => id), first.hasMore]).toEqual([ids.slice(0, 2), true]);
    const second = await listWorkflows(sql(), scope, { limit: 2, beforeId: ids[1] ?? '' });
    expect([second.items.map(({ id }) => id), second.hasMore]).toEqual([ids.slice(2), false]);
    for (const other of [
      { ...scope, orgId: uuidv7() },
      { ...scope, mode: 'sandbox' as const },
      { ...scope, subject: { type: 'box', id: 'other' } },
    ]) {
      expect((await listWorkflows(sql(), other, { limit: 2 })).items).toEqual([]);
      expect(await readWorkflow(sql(), ids[0] ?? '', other)).toBeUndefined();
    }
  });

  it('starts a missed schedule once and one with a busy resource later, and a broken one stops no other', async () => {
    const subject = { type: 'box', id: '1' };
    const common = {
      kind: 'dawdle',
      subject,
      orgId: world.orgId,
      mode: 'live' as const,
      input: { ms: 1 },
      firstRunAt: new Date(Date.now() - 86_400_000 * 3),
    };
    await saveSchedule(sql(), {
      ...common,
      name: 'nightly',
      resourceKey: 'box:nightly',
      interval: { dailyAt: '03:00' },
    });
    await saveSchedule(sql(), {
      ...common,
      name: 'busy',
      resourceKey: 'box:busy',
      interval: { intervalSeconds: 3_600 },
    });
    await saveSchedule(sql(), {
      ...common,
      name: 'broken',
      kind: '',
      resourceKey: 'box:broken',
      interval: { intervalSeconds: 3_600 },
    });
    const holder = await world.start({ kind: 'dawdle', resourceKey: 'box:busy', input: { ms: 600_000 } });
    world.engine([dawdle]);
    world.engine([dawdle]);
    await until(
      async () =>
        (await world.pool.query(`SELECT FROM workflow WHERE request_id = 'schedule_nightly' AND status = 'succeeded'`))
          .rowCount === 1,
    );
    await until(
      async () => (await world.pool.query('SELECT FROM workflow_schedule WHERE next_run_at <= now()')).rowCount === 0,
    );
    const { rows } = await world.pool.query(`SELECT request_id FROM workflow WHERE id <> $1`, [holder.workflowId]);
    expect(rows).toEqual([{ request_id: 'schedule_nightly' }]);
  });

  it('enqueues fairly: one organisation’s 5,000 rows do not starve another, and of 500 each is run once', async () => {
    const other = uuidv7();
    await world.pool.query(
      `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id)
       SELECT gen_random_uuid(), 'quick', 'box:' || n, 'box', n::text, $1, 'live', '{}', 'bulk' FROM generate_series(1, 5000) n`,
      [world.orgId],
    );
    const late = await world.start({ kind: 'quick', orgId: other, input: {} });
    await world.pool.query('UPDATE workflow SET dispatch_after = now() WHERE id = $1', [late.workflowId]);
    const { due } = await takeDueWorkflows(sql(), {
      kind: 'default',
      limit: 32,
      enqueueAgainSeconds: 0,
      queueEmpty: false,
      fullOrgs: [],
      fromOrg: firstOrg,
      hadTurns: false,
    });
    expect(due.slice(0, 2).map(({ id }) => id)).toContain(late.workflowId);
    await world.pool.query('DELETE FROM workflow WHERE org_id = $1 AND subject_id::int > 500', [world.orgId]);
    let runsBeforeLate: number | undefined;
    const runs: string[] = [];
    world.engine(
      [
        workflow({ kind: 'quick', input: z.object({}) })
          .step('count', {
            run: async ({ workflowId }) => {
              if (workflowId === late.workflowId) runsBeforeLate ??= runs.length;
              runs.push(workflowId);
            },
          })
          .build(),
      ],
      { concurrency: 16 },
    );
    await until(
      async () => (await world.pool.query(`SELECT FROM workflow WHERE status <> 'succeeded' LIMIT 1`)).rowCount === 0,
      {
        timeoutMs: 90_000,
        everyMs: 250,
      },
    );
    expect([runs.length, new Set(runs).size]).toEqual([501, 501]);
    expect(runsBeforeLate).toBeLessThan(250);
  });

  it('refuses to enqueue at once while the queue cannot be reached, so that no request waits', async () => {
    const queue = openQueue({ queueUrl: 'redis://127.0.0.1:1', queueName: 'boxes', log: world.log });
    await expect(queue.enqueue('dawdle', { workflowId: uuidv7(), orgId: uuidv7() })).rejects.toThrow(
      'the queue has not been reached yet',
    );
    await queue.close();
  });
});
