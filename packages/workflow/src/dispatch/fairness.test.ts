import { type QueueBackend, serviceBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import { announceDue, createListener } from '../store/listener';
import { claimWorkflow } from '../store/workflow-states';
import { dawdle, workflow } from '../testing/refill-box';
import { openWorld, type World } from '../testing/world';
import { openQueue } from './queue';
import { createSlots } from './slots';
import { firstOrg, orgsMax, takeDueWorkflows } from './sweep.store';

const forEver = { ms: 600_000 };

describe.each(serviceBackends())('slots over %s', (backend: QueueBackend) => {
  let world: World;
  beforeEach(async () => {
    world = await openWorld(backend);
  });
  afterEach(() => world.close());
  const running = async (orgId: string): Promise<number> => {
    const sql = "SELECT id FROM workflow WHERE org_id = $1 AND status = 'running' AND lease_until > now()";
    return (await world.pool.query(sql, [orgId])).rowCount ?? 0;
  };

  it('an organisation whose work never ends takes no slot from another, on however many workers, enqueued or swept', async () => {
    const [victim, second] = [uuidv7(), uuidv7()];
    world.engine([dawdle], { concurrency: 2 });
    world.engine([dawdle], { concurrency: 2 });
    const endless: Awaited<ReturnType<typeof world.start>>[] = [];
    for (let count = 0; count < 20; count += 1) endless.push(await world.start({ kind: 'dawdle', input: forEver }));
    const dispatcher = world.dispatcher();
    for (const { workflowId } of endless) dispatcher.enqueue({ workflowId, orgId: world.orgId, kind: 'dawdle' });
    await until(async () => (await running(world.orgId)) === 4);
    const swept = await world.start({ kind: 'dawdle', orgId: victim, input: { ms: 1 } });
    await until(async () => (await world.status(swept.workflowId)) === 'succeeded');
    for (let count = 0; count < 8; count += 1) await world.start({ kind: 'dawdle', orgId: second, input: forEver });
    await until(async () => (await running(second)) > 0);
    const enqueued = await world.start({ kind: 'dawdle', orgId: victim, input: { ms: 1 } });
    dispatcher.enqueue({ workflowId: enqueued.workflowId, orgId: victim, kind: 'dawdle' });
    await until(async () => (await world.status(enqueued.workflowId)) === 'succeeded');
    expect(await running(world.orgId)).toBe(4);
  });

  it('runs the next workflow of an organisation as soon as one of its slots is free', async () => {
    const all = await Promise.all(Array.from({ length: 6 }, () => world.start({ kind: 'dawdle', input: { ms: 20 } })));
    await world.pool.query('UPDATE workflow SET dispatch_after = now()');
    // The queue may not be reached yet at the first sweep, so the test wakes the sweep until a job runs. From then on,
    // only freed slots wake the sweep.
    const listener = createListener({ connectionString: world.databaseUrl, log: world.log });
    world.engine([dawdle], { concurrency: 1, sweepMs: 3_600_000, listener });
    await until(async () => {
      await announceDue(world.database.sql());
      return (await running(world.orgId)) > 0;
    });
    await listener.close();
    const ended = async () =>
      (await Promise.all(all.map(({ workflowId }) => world.status(workflowId)))).every(
        (status) => status === 'succeeded',
      );
    await until(ended);
    expect(await running(world.orgId)).toBe(0);
  });

  it('gives a freed slot to a waiting organisation that has none, before that of the ended run', async () => {
    const [other, newcomer] = [uuidv7(), uuidv7()];
    const begun: string[] = [];
    const ends: (() => void)[] = [];
    const untilTold = workflow({ kind: 'until_told', input: z.strictObject({}) })
      .step('wait', {
        run: ({ orgId }) =>
          new Promise<void>((resolve) => {
            begun.push(orgId);
            ends.push(resolve);
          }),
      })
      .build();
    for (let count = 0; count < 3; count += 1) await world.start({ kind: 'until_told' });
    world.engine([untilTold], { concurrency: 1 });
    await until(() => begun.length === 1);
    await world.start({ kind: 'until_told', orgId: other });
    // The worker takes the queued jobs one after another. So once the job of `other` runs, the worker already keeps the
    // two other jobs of the first organisation.
    await until(() => begun.length === 2);
    ends[0]?.();
    await until(() => begun.length === 3);
    const queue = openQueue({ queueUrl: world.queue.url, queueName: 'boxes', log: world.log });
    const { workflowId } = await world.start({ kind: 'until_told', orgId: newcomer });
    await until(() => queue.enqueue('until_told', { workflowId, orgId: newcomer }).then(() => true));
    // The worker takes jobs in their order. Once it logs that it ignores this malformed job, it has already taken the
    // newcomer's job.
    await queue.enqueue('until_told', { workflowId: 'none', orgId: newcomer });
    await until(() => world.lines.some(({ message }) => message === 'a job of another shape was ignored'));
    await queue.close();
    ends[2]?.();
    await until(() => begun.length === 4);
    ends[1]?.();
    await until(() => begun.length === 5);
    expect(begun).toEqual([world.orgId, other, world.orgId, newcomer, world.orgId]);
    for (const end of ends) end();
  });

  it('a job that names another organisation than the workflow has starts nothing', async () => {
    const { workflowId } = await world.start({ kind: 'dawdle', input: { ms: 1 } });
    const limits = { leaseSeconds: 15, crashesMax: 5, stepNamesByKind: '{}' };
    expect(await claimWorkflow(world.database.sql(), { workflowId, orgId: uuidv7() }, limits)).toBeUndefined();
    world.engine([dawdle], { sweepMs: 3_600_000 });
    const queue = openQueue({ queueUrl: world.queue.url, queueName: 'boxes', log: world.log });
    await until(() => queue.enqueue('dawdle', { workflowId, orgId: uuidv7() }).then(() => true));
    await until(async () => (await queue.waiting()) === 0);
    await queue.close();
    expect(await world.status(workflowId)).toBe('queued');
  });
});

describe('a query for due workflows', () => {
  let world: World;
  beforeEach(async () => {
    world = await openWorld('postgres');
  });
  afterEach(() => world.close());
  const look = (fromOrg: string, limit: number, fullOrgs: string[] = []) =>
    takeDueWorkflows(world.database.sql(), {
      kind: 'default',
      limit,
      enqueueAgainSeconds: 60,
      queueEmpty: false,
      fullOrgs,
      fromOrg,
      hadTurns: false,
    });
  const orgs = Math.floor(2.5 * orgsMax);
  const insert = (of: string, each: number) =>
    world.pool.query(
      `INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, request_id)
       SELECT gen_random_uuid(), 'dawdle', 'box:' || n || ':' || m, 'box', '1', ${of}, 'live', '{}', 'request-1'
       FROM generate_series(1, ${orgs}) n, generate_series(1, ${each}) m`,
    );

  it('continues where the previous query ended, so that every organisation has its turn before any has a second', async () => {
    await insert('md5(n::text)::uuid', 2);
    const seen: string[] = [];
    for (let from: string | null = firstOrg; from !== null; ) {
      const page: Awaited<ReturnType<typeof look>> = await look(from, 30);
      seen.push(...page.due.map(({ org_id }) => org_id));
      from = page.nextOrg;
    }
    expect([seen.length, new Set(seen).size]).toEqual([orgs, orgs]);
  });

  it('covers a limited number of organisations and leaves the rest to the next query, even if none has due work', async () => {
    await insert('md5(n::text)::uuid', 1);
    await world.pool.query("UPDATE workflow SET due_at = now() + interval '1 hour'");
    let looks = 1;
    for (let { nextOrg } = await look(firstOrg, 30); nextOrg !== null; { nextOrg } = await look(nextOrg, 30))
      looks += 1;
    expect(looks).toBe(3);
  });

  it('takes several workflows of an organisation when there are no others, and none of one that uses its whole share', async () => {
    await insert('md5((n % 2)::text)::uuid', 1);
    const { due, nextOrg } = await look(firstOrg, 30);
    const [first = '', second = ''] = due.map(({ org_id }) => org_id);
    expect([due.length, nextOrg, due.filter(({ org_id }) => org_id === first).length]).toEqual([30, null, 15]);
    expect(new Set((await look(firstOrg, 30, [first])).due.map(({ org_id }) => org_id))).toEqual(new Set([second]));
  });
});

it('one organisation alone gets half of the slots, and each later one half of the rest, down to the last slot', () => {
  const slots = createSlots(8);
  const job = (orgId: string) => ({ orgId, workflowId: uuidv7() });
  const taken = (orgId: string): number => {
    let count = 0;
    while (slots.take(job(orgId)) === 'taken') count += 1;
    return count;
  };
  expect(['a', 'b', 'c', 'd', 'e'].map(taken)).toEqual([4, 2, 1, 1, 0]);
  expect(slots.full().sort()).toEqual(['a', 'b', 'c', 'd']);
  // Organisation `a` has more than its share now. So the first slot that `a` gives back goes to `e`, which has none.
  // The second slot stays free for a newcomer, and the waiting job of `a` is not started.
  expect(slots.next('a')?.orgId).toBe('e');
  expect(slots.next('a')).toBeUndefined();
  expect(slots.take(job('f'))).toBe('taken');
});

it('keeps a bounded number of jobs for an organisation that has its share, each once, and gives them its free slots in turn', () => {
  const slots = createSlots(2);
  const bells = Array.from({ length: 66 }, () => ({ orgId: 'a', workflowId: uuidv7() }));
  const [running, ...rest] = bells;
  expect(running && slots.take(running)).toBe('taken');
  for (const job of rest.slice(0, 64)) expect(slots.take(job)).toBe('waits');
  for (const job of rest.slice(64)) expect(slots.take(job)).toBe('declined');
  expect(slots.next('a')).toBe(rest[0]);
  expect(slots.next('a')).toBe(rest[1]);
});

it('organisations that wait without a slot get the freed slots in turn', () => {
  const slots = createSlots(2);
  const job = (orgId: string) => ({ orgId, workflowId: uuidv7() });
  for (const orgId of ['a', 'b']) expect(slots.take(job(orgId))).toBe('taken');
  for (const orgId of ['a', 'b', 'c', 'd', 'a', 'b', 'c', 'd']) expect(slots.take(job(orgId))).toBe('waits');
  let running = ['a', 'b'];
  const order: (string | undefined)[] = [];
  while (running.length > 0) {
    const [ended = '', ...others] = running;
    const next = slots.next(ended)?.orgId;
    order.push(next);
    running = next === undefined ? others : [...others, next];
  }
  expect(order).toEqual(['c', 'd', 'a', 'b', 'c', 'd', 'a', 'b', undefined, undefined]);
});
