/**
 * @processes
 */
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { queueBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { z } from 'zod';
import { conclude } from '../definition/step-error';
import { readWorkflowById } from '../store/read-workflow';
import { abandonWorkflow, retryWorkflow } from '../store/workflow-states';
import { dawdle, refillBox, workflow } from '../testing/refill-box';
import { type Definition, openWorld, type World } from '../testing/world';

const [backend = 'postgres'] = queueBackends();

describe('recovery', () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld(backend);
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());
  const reaches = (workflowId: string, status: string, timeoutMs = 60_000) =>
    until(async () => (await world.status(workflowId)) === status, { timeoutMs, what: `${status} of ${workflowId}` });
  const view = async (workflowId: string) => (await readWorkflowById(world.database.sql(), workflowId))?.view;
  const ready = (count: number) =>
    until(() => world.lines.filter(({ message }) => message === 'ready').length >= count);

  it('hands the lease back on SIGTERM, so that the next worker starts although the lease has an hour left', async () => {
    const hour = { WORKFLOW_LEASE_SECONDS: '3600' };
    const first = world.spawnWorker(hour);
    const { workflowId } = await world.start({ kind: 'dawdle', input: { ms: 600_000 } });
    await reaches(workflowId, 'running');
    const second = world.spawnWorker(hour);
    await ready(2);
    // The first worker keeps the input that it has already read.
    await world.pool.query(`UPDATE workflow SET input = '{"ms": 1}' WHERE id = $1`, [workflowId]);
    first.kill('SIGTERM');
    const [code] = await once(first, 'exit');
    expect(code).toBe(0);
    await reaches(workflowId, 'succeeded');
    expect((await view(workflowId))?.steps[0]?.attempts).toBe(2);
    expect(second.exitCode).toBeNull();
    const { rows } = await world.pool.query('SELECT failures FROM workflow_step WHERE workflow_id = $1', [workflowId]);
    expect(rows).toEqual([{ failures: 0 }]);
  });

  it('parks a workflow that kills its workers, and runs the others', async () => {
    let hired = 0;
    let isOver = false;
    const hire = (): void => {
      hired += 1;
      world.spawnWorker().once('exit', (_code, signal) => signal === 'SIGKILL' && !isOver && hired < 8 && hire());
    };
    const poison = await world.start({ kind: 'dawdle', input: { ms: 1, poison: true } });
    // Three of the five workers that may die are recorded as dead, so two more deaths suffice.
    await world.pool.query('UPDATE workflow SET consecutive_crashes = 3 WHERE id = $1', [poison.workflowId]);
    hire();
    await reaches(poison.workflowId, 'needs_attention', 90_000);
    expect((await view(poison.workflowId))?.steps[0]?.attempts).toBe(2);
    expect(hired).toBe(3);
    const other = await world.start({ kind: 'dawdle', input: { ms: 1 } });
    await reaches(other.workflowId, 'succeeded');
    const blocked = await world.start({ kind: 'dawdle', resourceKey: 'box:poisoned' });
    expect(blocked.started).toBe(true);
    // `isOver` keeps the test from starting another worker when the world kills the last one.
    isOver = true;
  });

  it('parks a row that it cannot read, and that row only', async () => {
    world.engine([dawdle, refillBox]);
    const corrupt = await world.start({ kind: 'dawdle', input: 'nonsense' });
    const unknown = await world.start({ kind: 'never_heard_of' });
    const good = await world.start({ kind: 'dawdle', input: { ms: 1 } });
    await reaches(good.workflowId, 'succeeded');
    await reaches(corrupt.workflowId, 'needs_attention');
    await reaches(unknown.workflowId, 'needs_attention');
    await abandonWorkflow(world.database.sql(), unknown.workflowId);
    await reaches(unknown.workflowId, 'failed');
    expect((await view(unknown.workflowId))?.error).toMatchObject({ code: 'abandoned', after: 'step_failed' });
    await expect(abandonWorkflow(world.database.sql(), unknown.workflowId)).rejects.toMatchObject({
      code: 'workflow_not_waiting',
    });
  });

  it('past the point of no return goes only forward: parks, keeps the resource, and staff retry or abandon', async () => {
    let isBroken = true;
    const calls: string[] = [];
    const failed: string[] = [];
    const parked: string[] = [];
    const oneWay: Definition = workflow({ kind: 'one_way', input: z.object({}) })
      .step('before', { run: async () => void calls.push('before'), undo: async () => void calls.push('undo before') })
      .pointOfNoReturn()
      .step('after', {
        run: async () => {
          calls.push('after');
          if (isBroken) throw new Error('broken');
        },
        attemptsMax: 1,
      })
      .onEnd({
        parked: async (_tx, run) => {
          parked.push(run.workflowId);
          // The hook fails the second time. Staff are called all the same.
          if (parked.length > 1) throw new Error('the hook is broken');
        },
        failed: async (_tx, run, { code }) => void failed.push(`${run.workflowId} ${code}`),
      })
      .build();
    world.engine([oneWay]);
    const first = await world.start({ kind: 'one_way', resourceKey: 'box:1' });
    await reaches(first.workflowId, 'needs_attention');
    expect(calls).toEqual(['before', 'after']);
    expect(await world.start({ kind: 'one_way', resourceKey: 'box:1' })).toEqual({
      started: false,
      workflowId: first.workflowId,
      status: 'needs_attention',
    });
    expect(world.lines.find(({ alarm }) => alarm === 'needs_attention')).toMatchObject({
      level: 'error',
      workflow_id: first.workflowId,
    });
    isBroken = false;
    await retryWorkflow(world.database.sql(), first.workflowId);
    await reaches(first.workflowId, 'succeeded');
    expect(calls).toEqual(['before', 'after', 'after']);
    isBroken = true;
    const second = await world.start({ kind: 'one_way', resourceKey: 'box:1' });
    await reaches(second.workflowId, 'needs_attention');
    await abandonWorkflow(world.database.sql(), second.workflowId);
    await reaches(second.workflowId, 'failed');
    expect(failed).toEqual([`${second.workflowId} abandoned`]);
    expect(parked).toEqual([first.workflowId, second.workflowId]);
    expect(calls).not.toContain('undo before');
  });

  it('an abandoned workflow says at once what becomes of its resource, and stays abandoned when its end waits for staff again', async () => {
    let isBroken = true;
    const failed: string[] = [];
    const stubborn: Definition = workflow({ kind: 'stubborn', input: z.object({}) })
      .pointOfNoReturn()
      .step('only', { run: async () => Promise.reject(new Error('broken')), attemptsMax: 1 })
      .onEnd({
        failed: async (_tx, _run, { code }) => {
          if (isBroken) throw new Error('the hook is broken');
          failed.push(code);
        },
      })
      .build();
    world.engine([stubborn]);
    const { workflowId } = await world.start({ kind: 'stubborn' });
    await reaches(workflowId, 'needs_attention');
    await abandonWorkflow(world.database.sql(), workflowId, 'It is taken back.');
    expect((await view(workflowId))?.error).toMatchObject({
      code: 'abandoned',
      detail: 'It is taken back.',
      after: 'step_failed',
    });
    // Four of the five attempts to write the end are recorded as failed, so that the test need not wait for the pauses
    // between them.
    await world.pool.query('UPDATE workflow SET end_failures = 4 WHERE id = $1', [workflowId]);
    await reaches(workflowId, 'needs_attention');
    isBroken = false;
    await retryWorkflow(world.database.sql(), workflowId);
    await reaches(workflowId, 'failed');
    expect([failed, (await view(workflowId))?.error?.code]).toEqual([['abandoned'], 'abandoned']);
  });

  it('ends as failed, without staff, when the target itself refuses behind the point of no return', async () => {
    const calls: string[] = [];
    const refused: Definition = workflow({ kind: 'refused', input: z.object({}) })
      .step('before', { run: async () => void calls.push('before'), undo: async () => void calls.push('undo before') })
      .pointOfNoReturn()
      .step('after', {
        run: async () => {
          throw conclude('backup_not_found', { internal: 'the target said so' });
        },
      })
      .build();
    world.engine([refused]);
    const { workflowId } = await world.start({ kind: 'refused' });
    await reaches(workflowId, 'failed');
    expect(await view(workflowId)).toMatchObject({
      error: { code: 'backup_not_found' },
      steps: [{ status: 'undone' }, { status: 'failed' }],
    });
    expect(calls).toEqual(['before', 'undo before']);
  });

  it('calls staff when an undo fails, and goes on undoing when they say so', async () => {
    let isStuck = true;
    const stuck = workflow({ kind: 'stuck', input: z.object({}) })
      .step('make', {
        run: async () => 1,
        undo: async () => {
          if (isStuck) throw new Error('cannot be taken back');
        },
        attemptsMax: 1,
      })
      .step('break', {
        run: async () => {
          throw new Error('broken');
        },
        attemptsMax: 1,
      })
      .build();
    world.engine([stuck]);
    const { workflowId } = await world.start({ kind: 'stuck' });
    await reaches(workflowId, 'needs_attention');
    isStuck = false;
    await retryWorkflow(world.database.sql(), workflowId);
    await reaches(workflowId, 'failed');
    expect((await view(workflowId))?.steps.map(({ status }) => status)).toEqual(['undone', 'failed']);
  });

  it('with an older list of steps on record continues if the list fits, calls staff if not, and repeats nothing', async () => {
    const calls: string[] = [];
    const listing = (names: readonly string[]) =>
      names
        .reduce(
          (builder, name) => builder.step(name, { run: async () => void calls.push(name) }),
          workflow({ kind: 'listed', input: z.object({}) }),
        )
        .build();
    const withRecord = async (steps: readonly [string, string, number][]) => {
      const { workflowId } = await world.start({ kind: 'listed', definition: listing(steps.map(([name]) => name)) });
      for (const [name, status, attempts] of steps)
        await world.pool.query(
          'UPDATE workflow_step SET status = $3, attempts = $4 WHERE workflow_id = $1 AND name = $2',
          [workflowId, name, status, attempts],
        );
      return workflowId;
    };
    const grown = await withRecord([
      ['a', 'succeeded', 1],
      ['c', 'pending', 0],
      ['gone', 'pending', 0],
    ]);
    const begun = await withRecord([
      ['a', 'succeeded', 1],
      ['gone', 'running', 1],
    ]);
    const moved = await withRecord([
      ['a', 'succeeded', 1],
      ['c', 'succeeded', 1],
      ['b', 'pending', 0],
    ]);
    world.engine([listing(['a', 'b', 'c'])]);
    await reaches(grown, 'succeeded');
    await reaches(begun, 'needs_attention');
    await reaches(moved, 'needs_attention');
    expect(calls).toEqual(['b', 'c']);
    expect((await view(grown))?.steps.map(({ name, attempts }) => [name, attempts])).toEqual([
      ['a', 1],
      ['b', 1],
      ['c', 1],
    ]);
  });

  it('continues a run without a newer step that it has passed, and only if the definition allows that', async () => {
    const calls: string[] = [];
    const call = async ({ workflowId }: { workflowId: string }, name: string) =>
      void calls.push(`${workflowId} ${name}`);
    const older = (kind: string) =>
      workflow({ kind, input: z.object({}) })
        .step('a', { run: (step) => call(step, 'a') })
        .step('c', { run: (step) => call(step, 'c') })
        .step('d', { run: (step) => call(step, 'd') })
        .build();
    const newer = (kind: string, skipIfPassed: boolean) =>
      workflow({ kind, input: z.object({}) })
        .step('a', { run: (step) => call(step, 'a') })
        .step('b', { skipIfPassed, run: (step) => call(step, 'b') })
        .step('c', {
          attemptsMax: 2,
          run: async (step) => {
            await call(step, 'c');
            // The step runs again under a second claim, which continues at the same place.
            if (step.attempt === 2) throw new Error('not yet');
          },
        })
        .step('d', { run: async (step) => call(step, `d after ${Object.keys(step.outputs).join()}`) })
        .build();
    const begunAtC = async (kind: string) => {
      const { workflowId } = await world.start({ kind, definition: older(kind) });
      await world.pool.query(
        `UPDATE workflow_step SET status = CASE name WHEN 'a' THEN 'succeeded' ELSE 'running' END, attempts = 1
         WHERE workflow_id = $1 AND name IN ('a', 'c')`,
        [workflowId],
      );
      return workflowId;
    };
    const passing = await begunAtC('passing');
    const strict = await begunAtC('strict');
    const fresh = (await world.start({ kind: 'passing', definition: older('passing') })).workflowId;
    world.engine([newer('passing', true), newer('strict', false)]);
    await reaches(passing, 'succeeded');
    await reaches(strict, 'needs_attention');
    await reaches(fresh, 'succeeded');
    const callsOf = (id: string) =>
      calls.filter((line) => line.startsWith(id)).map((line) => line.slice(id.length + 1));
    expect(callsOf(passing)).toEqual(['c', 'c', 'd after a,c']);
    expect((await view(passing))?.steps.map(({ name, status, attempts }) => [name, status, attempts])).toEqual([
      ['a', 'succeeded', 1],
      ['c', 'succeeded', 3],
      ['d', 'succeeded', 1],
    ]);
    expect(callsOf(strict)).toEqual([]);
    expect(callsOf(fresh)).toEqual(['a', 'b', 'c', 'd after a,b,c']);
  });

  it('stops working on a workflow that another worker has claimed, at the next renewal of the lease', async () => {
    let reason: unknown;
    const long = workflow({ kind: 'long', input: z.object({}) })
      .step('wait', {
        run: async ({ signal }) => {
          await sleep(600_000, undefined, { signal }).catch(() => undefined);
          reason = signal.reason;
          throw new Error('told to stop');
        },
      })
      .build();
    world.engine([long], { leaseSeconds: 6 });
    const { workflowId } = await world.start({ kind: 'long' });
    await reaches(workflowId, 'running');
    await world.pool.query(
      `UPDATE workflow SET fence = nextval('workflow_fence'), lease_until = now() + interval '1 hour' WHERE id = $1`,
      [workflowId],
    );
    await until(() => reason);
    expect(reason).toMatchObject({ name: 'LeaseLost' });
    const { rows } = await world.pool.query(
      'SELECT attempts, failures, status FROM workflow_step WHERE workflow_id = $1',
      [workflowId],
    );
    expect(rows).toEqual([{ attempts: 1, failures: 0, status: 'running' }]);
  });
});
