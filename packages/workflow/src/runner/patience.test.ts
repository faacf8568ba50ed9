import { setTimeout as wait } from 'node:timers/promises';
import { until } from '@drydock/testing/wait';
import { z } from 'zod';
import { fail, retryLater } from '../definition/step-error';
import { saveSchedule } from '../store/schedules';
import { retryWorkflow } from '../store/workflow-states';
import { workflow } from '../testing/refill-box';
import { openWorld, type World } from '../testing/world';

const input = z.object({});
const refused = () => Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' });

describe('work that cannot go on', () => {
  let world: World;
  beforeAll(async () => {
    world = await openWorld('postgres');
  });
  afterEach(() => world.reset());
  afterAll(() => world.close());
  const isNow = (workflowId: string, status: string) =>
    until(async () => {
      await world.skipPauses();
      return (await world.status(workflowId)) === status;
    });
  const stepOf = async (workflowId: string) => {
    const { rows } = await world.pool.query<{ attempts: number; failures: number; undo_failures: number }>(
      'SELECT * FROM workflow_step WHERE workflow_id = $1',
      [workflowId],
    );
    return rows[0];
  };

  it('waits while a dependency cannot be reached, and fails when the outage lasts too long', async () => {
    const away = workflow({ kind: 'away', input })
      .step('ask', { run: () => Promise.reject(refused()), attemptsMax: 1 })
      .build();
    world.engine([away], { outageSecondsMax: 1 });
    const { workflowId } = await world.start({ kind: 'away' });
    await isNow(workflowId, 'failed');
    expect((await stepOf(workflowId))?.attempts).toBeGreaterThan(1);
    expect((await stepOf(workflowId))?.failures).toBe(0);
  });

  it.each(['UND_ERR_CONNECT_TIMEOUT', 'ENETUNREACH'])(
    'waits while a host is silently away (%s), and uses up no attempt',
    async (code) => {
      let asked = 0;
      const unreachable = () => new Error('unreachable', { cause: Object.assign(new Error('no answer'), { code }) });
      const silent = workflow({ kind: 'silent', input })
        .step('ask', {
          attemptsMax: 1,
          run: async () => {
            asked += 1;
            if (asked < 3) throw unreachable();
          },
        })
        .build();
      world.engine([silent]);
      const { workflowId } = await world.start({ kind: 'silent' });
      await until(async () => {
        await world.skipPauses();
        return ['succeeded', 'failed'].includes((await world.status(workflowId)) ?? '');
      });
      expect([await world.status(workflowId), asked]).toEqual(['succeeded', 3]);
    },
  );

  it('fails when each of its attempts loses its dependency only after a long time', async () => {
    const kills = workflow({ kind: 'kills', input })
      .step('load', {
        attemptsMax: 2,
        run: async () => {
          await wait(5);
          throw refused();
        },
      })
      .build();
    world.engine([kills], { outagePassedAfterMs: 1 });
    const { workflowId } = await world.start({ kind: 'kills' });
    await isNow(workflowId, 'failed');
    expect(await stepOf(workflowId)).toMatchObject({ attempts: 2 });
  });

  it('is told how many of its attempts are used up, which an outage and a postponement do not change', async () => {
    const told: [attempt: number, failures: number][] = [];
    const ends = [refused, () => retryLater({ seconds: 0 }), () => new Error('busy'), refused];
    const asks = workflow({ kind: 'asks', input })
      .step('ask', {
        run: async ({ attempt, failures }) => {
          told.push([attempt, failures]);
          const end = ends[attempt - 1];
          if (end !== undefined) throw end();
        },
      })
      .build();
    world.engine([asks]);
    const { workflowId } = await world.start({ kind: 'asks' });
    await isNow(workflowId, 'succeeded');
    expect(told).toEqual([
      [1, 0],
      [2, 0],
      [3, 0],
      [4, 1],
      [5, 1],
    ]);
  });

  it('calls no staff when a host cannot be reached for a moment during an undo', async () => {
    let asked = 0;
    const back = async () => {
      asked += 1;
      if (asked < 3) throw refused();
    };
    const taken = workflow({ kind: 'taken', input })
      .step('put', { run: () => Promise.reject(fail('step_failed')), undo: back, attemptsMax: 1 })
      .build();
    world.engine([taken]);
    const { workflowId } = await world.start({ kind: 'taken' });
    await isNow(workflowId, 'failed');
    expect(asked).toBe(3);
  });

  it('ends even if Postgres cannot store the text of its failure for the customer', async () => {
    const strange = workflow({ kind: 'strange', input })
      .step('ask', {
        run: () => Promise.reject(fail('step_failed', { detail: 'a\0b', extra: { item: ['c\ud800d'] } })),
      })
      .build();
    world.engine([strange]);
    const { workflowId } = await world.start({ kind: 'strange' });
    await isNow(workflowId, 'failed');
    const { rows } = await world.pool.query('SELECT error FROM workflow WHERE id = $1', [workflowId]);
    expect(rows).toEqual([{ error: { code: 'step_failed', detail: 'a\ufffdb', extra: { item: ['c\ufffdd'] } } }]);
  });

  it('may be postponed for another day after staff retry it', async () => {
    let isReady = false;
    const follows = workflow({ kind: 'follows', input })
      .pointOfNoReturn()
      .step('follow', {
        attemptsMax: 1,
        run: async () => {
          if (!isReady) throw retryLater({ seconds: 0.2 });
        },
      })
      .build();
    world.engine([follows]);
    const { workflowId } = await world.start({ kind: 'follows' });
    await until(async () => ((await stepOf(workflowId))?.attempts ?? 0) >= 2);
    await world.pool.query(`UPDATE workflow_step SET started_at = now() - interval '25 hours'`);
    await isNow(workflowId, 'needs_attention');
    await retryWorkflow(world.database.sql(), workflowId);
    const before = (await stepOf(workflowId))?.attempts ?? 0;
    await until(async () => ((await stepOf(workflowId))?.attempts ?? 0) > before + 2);
    isReady = true;
    await isNow(workflowId, 'succeeded');
    expect((await stepOf(workflowId))?.failures).toBe(0);
  });

  it('calls staff when an undo was postponed for a day, and may be postponed for another day after they retry it', async () => {
    let undone = 0;
    let isReady = false;
    const back = async () => {
      undone += 1;
      if (!isReady) throw retryLater({ seconds: 0.2 });
    };
    const discards = workflow({ kind: 'discards', input })
      .step('make', { run: () => Promise.reject(fail('step_failed')), undo: back, attemptsMax: 1 })
      .build();
    world.engine([discards]);
    const { workflowId } = await world.start({ kind: 'discards' });
    await until(async () => undone > 1);
    await world.pool.query(`UPDATE workflow_step SET finished_at = now() - interval '25 hours'`);
    await isNow(workflowId, 'needs_attention');
    await retryWorkflow(world.database.sql(), workflowId);
    const before = undone;
    await until(async () => undone > before + 2);
    isReady = true;
    await isNow(workflowId, 'failed');
    expect((await stepOf(workflowId))?.undo_failures).toBe(0);
  });

  it('starts a schedule once that a wrong clock had put off for years, when the clock is right again', async () => {
    const night = {
      kind: 'night',
      orgId: world.orgId,
      mode: 'live' as const,
      input: {},
      interval: { dailyAt: '03:00' },
    };
    for (const name of ['nightly', 'busy'])
      await saveSchedule(world.database.sql(), {
        ...night,
        name,
        resourceKey: name,
        subject: { type: 'box', id: name },
      });
    await world.pool.query(
      `UPDATE workflow_schedule SET last_run_at = now() + interval '9 years', next_run_at = now() + interval '9 years'`,
    );
    const holder = await world.start({ kind: 'unknown', resourceKey: 'busy' });
    await world.pool.query(`UPDATE workflow SET due_at = now() + interval '1 day' WHERE id = $1`, [holder.workflowId]);
    const sleeps = workflow({ kind: 'night', input })
      .step('sleep', { run: async () => null })
      .build();
    world.engine([sleeps]);
    const late = `SELECT FROM workflow_schedule WHERE next_run_at > now() + interval '2 days' OR last_run_at > now()`;
    await until(async () => (await world.pool.query(late)).rowCount === 0);
    const { rows } = await world.pool.query(`SELECT request_id FROM workflow WHERE id <> $1`, [holder.workflowId]);
    expect(rows).toEqual([{ request_id: 'schedule_nightly' }]);
  });
});
