import { workflowSchema } from '@drydock/contracts/platform/workflows';
import { type QueueBackend, serviceBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { z } from 'zod';
import { type WorkflowDefinition, workflowsFor } from '../definition/definition';
import { fail, retryLater } from '../definition/step-error';
import { readWorkflowById } from '../store/read-workflow';
import { currentText, leftovers } from '../testing/box';
import { refillBox, workflow } from '../testing/refill-box';
import { openWorld, type World } from '../testing/world';
import { createEngine } from './engine';

describe.each(serviceBackends())('the engine over %s', (backend: QueueBackend) => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld(backend);
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());
  const view = async (workflowId: string) => {
    const found = await readWorkflowById(world.database.sql(), workflowId);
    return workflowSchema.parse(found?.view);
  };

  it('runs the steps in order and ends with the hooks of the definition', async () => {
    world.engine([refillBox]);
    const { box, workflowId } = await world.startBox();
    world.dispatcher().enqueue({ workflowId, orgId: world.orgId, kind: 'refill_box' });
    await until(async () => (await world.status(workflowId)) === 'succeeded');
    expect(currentText(world.boxes, box)).toBe('new');
    expect(leftovers(world.boxes, box)).toEqual([]);
    const shown = await view(workflowId);
    expect(shown).toMatchObject({ status: 'succeeded', progress: 100, error: null });
    expect(shown.steps.map(({ name, status, attempts }) => [name, status, attempts])).toEqual([
      ['check', 'succeeded', 1],
      ['stage', 'succeeded', 1],
      ['swap', 'succeeded', 1],
      ['retire', 'succeeded', 1],
    ]);
    expect((await world.pool.query('SELECT status FROM box_end WHERE workflow_id = $1', [workflowId])).rows).toEqual([
      { status: 'succeeded' },
    ]);
  });

  it('retries a transient failure, and undoes the steps when it does not pass', async () => {
    let attempts = 0;
    const undone: string[] = [];
    const flaky = workflow({ kind: 'flaky', input: z.object({ passes: z.boolean() }) })
      .step('first', {
        run: async () => 1,
        undo: async () => void undone.push('first'),
      })
      .step('second', {
        run: async ({ input, attempt }) => {
          attempts += 1;
          if (!input.passes || attempt < 2) throw new Error('not now');
        },
        undo: async () => void undone.push('second'),
        attemptsMax: 2,
      })
      .build();
    world.engine([flaky]);
    const good = await world.start({ kind: 'flaky', input: { passes: true } });
    const isNow = (workflowId: string, status: string) =>
      until(async () => {
        await world.skipPauses();
        return (await world.status(workflowId)) === status;
      });
    await isNow(good.workflowId, 'succeeded');
    expect([attempts, undone]).toEqual([2, []]);
    const bad = await world.start({ kind: 'flaky', input: { passes: false } });
    await isNow(bad.workflowId, 'failed');
    expect([attempts, undone]).toEqual([4, ['second', 'first']]);
    const shown = await view(bad.workflowId);
    expect(shown.error?.code).toBe('step_failed');
    expect(shown.steps.map(({ status }) => status)).toEqual(['undone', 'failed']);
  });

  it('logs the start and the end of each attempt at a step and at its undo, with its number and how long it took', async () => {
    const secret = 'hunter2';
    const told = (isRoutine: boolean) =>
      workflow({ kind: isRoutine ? 'told_quietly' : 'told', input: z.object({ secret: z.string() }), isRoutine })
        .step('ask', {
          run: async ({ attempt, input }) => {
            if (attempt < 3) throw retryLater({ seconds: 0 });
            return input.secret;
          },
          undo: async () => undefined,
        })
        .step('pass', {
          run: async ({ attempt, input }) => {
            if (attempt < 2) throw new Error('not now');
            return input.secret;
          },
        })
        .step('refuse', {
          run: async () => {
            throw fail('backup_tampered');
          },
        })
        .build();
    world.engine([told(false), told(true)]);
    const linesOf = async (kind: string) => {
      const { workflowId } = await world.start({ kind, input: { secret } });
      await until(async () => {
        await world.skipPauses();
        return (await world.status(workflowId)) === 'failed';
      });
      return world.lines.filter((line) => line['workflow_id'] === workflowId && / (started|ended)$/.test(line.message));
    };
    const lines = await linesOf('told');
    expect(
      lines.map(({ level, message, step, attempt, end }) => [level, message, step, attempt, end].join(' ').trim()),
    ).toEqual([
      'info step started ask 1',
      'debug step ended ask 1 wait',
      'debug step started ask 2',
      'debug step ended ask 2 wait',
      'debug step started ask 3',
      'info step ended ask 3 done',
      'info step started pass 1',
      'info step ended pass 1 again',
      'info step started pass 2',
      'info step ended pass 2 done',
      'info step started refuse 1',
      'info step ended refuse 1 failed',
      'info undo started ask 1',
      'info undo ended ask 1 done',
    ]);
    for (const { message, duration_ms: ms, total_ms: total } of lines.filter(({ message: text }) =>
      text.endsWith('ended'),
    ))
      expect([message, Number.isInteger(ms), Number(total) >= Number(ms)]).toEqual([message, true, true]);
    expect(JSON.stringify(lines)).not.toContain(secret);
    // A workflow that a schedule starts every minute is logged at debug only.
    expect(new Set((await linesOf('told_quietly')).map(({ level }) => level))).toEqual(new Set(['debug']));
  });

  it('gives every step and every hook the context of its worker, and refuses one that lacks something', async () => {
    const seen: string[] = [];
    const note = (where: string, context: { name: string }): void => void seen.push(`${where} ${context.name}`);
    const named = workflowsFor<{ name: string }, unknown>()({ kind: 'named', input: z.object({ fails: z.boolean() }) })
      .step('first', {
        run: async (_step, context) => note('run', context),
        undo: async (_step, context) => note('undo', context),
        commit: async (_tx, _step, _output, context) => note('commit', context),
      })
      .step('second', {
        run: async ({ input }) => {
          if (input.fails) throw fail('backup_tampered');
        },
      })
      .onEnd({
        succeeded: async (_tx, _run, context) => note('succeeded', context),
        failed: async (_tx, _run, _problem, context) => note('failed', context),
      })
      .build();
    const common = { database: world.database, queueUrl: world.queue.url, queueName: 'named', log: world.log };
    const timing = { leaseSeconds: 15, sweepMs: 50, concurrency: 1 };
    const engine = createEngine({ ...common, ...timing, definitions: [named], context: { name: 'ours' } });
    // The type check of this file fails if a worker could run steps that need more than its context has.
    type RunsIn<Context> = typeof named extends WorkflowDefinition<Context, unknown> ? true : false;
    const runsIn: [RunsIn<{ name: string; more: Date }>, RunsIn<{ name: number }>, RunsIn<unknown>] = [
      true,
      false,
      false,
    ];
    expect(runsIn).toEqual([true, false, false]);
    engine.start();
    for (const fails of [false, true]) {
      const { workflowId } = await world.start({ kind: 'named', input: { fails } });
      await until(async () => (await world.status(workflowId)) === (fails ? 'failed' : 'succeeded'));
    }
    await engine.stop();
    expect(seen).toEqual([
      'run ours',
      'commit ours',
      'succeeded ours',
      'run ours',
      'commit ours',
      'undo ours',
      'failed ours',
    ]);
  });

  it('fails at once and for good when a step says so, with its own code', async () => {
    const tampered = workflow({ kind: 'tampered', input: z.object({}) })
      .step('verify', {
        run: async () => {
          throw fail('backup_tampered', { internal: 'segment 7' });
        },
      })
      .build();
    world.engine([tampered]);
    const { workflowId } = await world.start({ kind: 'tampered' });
    await until(async () => (await world.status(workflowId)) === 'failed');
    const shown = await view(workflowId);
    expect(shown.error).toMatchObject({ code: 'backup_tampered', request_id: 'request-1' });
    expect(JSON.stringify(shown)).not.toContain('segment 7');
    expect(shown.steps[0]).toMatchObject({ status: 'failed', attempts: 1 });
  });

  it('ends a workflow even if Postgres cannot store the text of its failure for staff', async () => {
    const strange = workflow({ kind: 'strange', input: z.object({}) })
      .step('ask', {
        run: async () => {
          throw fail('step_failed', { internal: 'the provider said: a\0b' });
        },
      })
      .build();
    world.engine([strange]);
    const { workflowId } = await world.start({ kind: 'strange' });
    await until(async () => (await world.status(workflowId)) === 'failed');
    const { rows } = await world.pool.query('SELECT error_internal FROM workflow WHERE id = $1', [workflowId]);
    expect(rows).toEqual([{ error_internal: 'the provider said: a\ufffdb' }]);
  });
});
