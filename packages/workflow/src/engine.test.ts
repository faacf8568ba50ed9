import { workflowSchema } from '@drydock/contracts/workflows';
import { type QueueBackend, queueBackends } from '@drydock/test-kit/queue-backends';
import { until } from '@drydock/test-kit/wait';
import { z } from 'zod';
import { readWorkflowById } from './read-workflow';
import { fail } from './step-error';
import { currentText, leftovers } from './testing/box';
import { createRefillBox } from './testing/refill-box';
import { openWorld, type World } from './testing/world';
import { workflow } from './workflow';

describe.each(queueBackends())('the engine over %s', (backend: QueueBackend) => {
  let world: World;
  beforeEach(async () => {
    world = await openWorld(backend);
  });
  afterEach(() => world.close());
  const view = async (workflowId: string) => {
    const found = await readWorkflowById(world.database.sql(), workflowId);
    return workflowSchema.parse(found?.view);
  };

  it('runs the steps in order and ends with the hooks of the definition', async () => {
    world.engine([createRefillBox(world.database, world.boxes)]);
    const { box, workflowId } = await world.startBox();
    world.dispatcher().ring({ workflowId, orgId: world.orgId });
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

  it('retries what may pass, and takes the steps back when it does not', async () => {
    let attempts = 0;
    const undone: string[] = [];
    const flaky = workflow({ kind: 'flaky', input: z.object({ passes: z.boolean() }) })
      .step('first', {
        do: async () => 1,
        undo: async () => void undone.push('first'),
      })
      .step('second', {
        do: async ({ input, attempt }) => {
          attempts += 1;
          if (!input.passes || attempt < 2) throw new Error('not now');
        },
        undo: async () => void undone.push('second'),
        attemptsMax: 2,
      })
      .build();
    world.engine([flaky]);
    const good = await world.start({ kind: 'flaky', input: { passes: true } });
    await until(async () => (await world.status(good.workflowId)) === 'succeeded');
    expect([attempts, undone]).toEqual([2, []]);
    const bad = await world.start({ kind: 'flaky', input: { passes: false } });
    await until(async () => (await world.status(bad.workflowId)) === 'failed');
    expect([attempts, undone]).toEqual([4, ['second', 'first']]);
    const shown = await view(bad.workflowId);
    expect(shown.error?.code).toBe('step_failed');
    expect(shown.steps.map(({ status }) => status)).toEqual(['undone', 'failed']);
  });

  it('fails at once and for good when a step says so, with its own code', async () => {
    const tampered = workflow({ kind: 'tampered', input: z.object({}) })
      .step('verify', {
        do: async () => {
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

  it('ends a workflow whose failure is told in a text that Postgres cannot hold', async () => {
    const strange = workflow({ kind: 'strange', input: z.object({}) })
      .step('ask', {
        do: async () => {
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
