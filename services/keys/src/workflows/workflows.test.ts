import type { EventType, WorkflowSummary } from '@drydock/contracts/keys/events';
import { timeOfId } from '@drydock/contracts/platform/values';
import { refusalOf } from '@drydock/service/testing/problem';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { type GoodKey, type KeysApi, startKeys } from '../../test/keys-api';
import { openDatabase } from '../context/database.store';
import { purgeWorkflows } from './workflow.store';

let api: KeysApi;
let root: GoodKey;
beforeAll(async () => {
  api = await startKeys();
});
beforeEach(async () => {
  root = await api.bootstrap();
});
afterAll(() => api.close());

const list = async (query = '', { caller } = root): Promise<WorkflowSummary[]> => {
  const answer = await api.call(caller, 'GET', `/v1/workflows${query}`);
  expect(answer.status).toBe(200);
  return (answer.json as { data: WorkflowSummary[] }).data;
};

const failure = {
  type: '/problems/step_failed',
  title: 'x',
  status: 500,
  detail: 'x',
  code: 'step_failed',
  request_id: 'x',
};
type Turn = [type: EventType, more?: { resource?: string; mode?: string; kind?: string }];

/** Delivers the states of a workflow in one call. `id` names the workflow. */
async function tell(id: string, turns: Turn[], { caller } = root): Promise<void> {
  const entries = turns.map(([type, { resource = '/v1/sites/a', mode = 'live', kind = 'restore_backup' } = {}]) => ({
    ...{ id: uuidv7(), type, at: new Date().toISOString(), org_id: caller.orgId, resource, actor_key_id: null, mode },
    workflow: { id, kind, status: 'queued', error: /failed|attention/.test(type) ? failure : null },
  }));
  const signed = { issuer: 'hosting', secret: api.secrets.audit };
  expect((await api.internal('/internal/events', { service: 'hosting', entries }, signed)).status).toBe(204);
  const last = entries.at(-1)?.id;
  await until(
    async () => (await api.rows('SELECT 1 FROM events WHERE id = $1 AND seq IS NOT NULL', [last])).length === 1,
  );
}

test('a workflow is listed from its first event on, with the status of its latest event', async () => {
  const id = uuidv7();
  await tell(id, [['workflow.accepted', { resource: '/v1/databases/b', kind: 'upgrade' }]]);
  const told = {
    ...{
      id,
      kind: 'upgrade',
      status: 'unfinished',
      resource: '/v1/databases/b',
      url: `/v1/databases/b/workflows/${id}`,
    },
    ...{ actor_key_id: null, created_at: timeOfId(id).toISOString(), error: null },
  };
  expect(await list()).toEqual([{ ...told, updated_at: expect.any(String) }]);
  await tell(id, [['workflow.needs_attention']]);
  expect(await list()).toMatchObject([{ ...told, status: 'needs_attention', error: failure }]);
  await tell(id, [['workflow.retried']]);
  expect(await list()).toMatchObject([told]);
  await tell(id, [['workflow.needs_attention'], ['workflow.retried'], ['workflow.succeeded']]);
  expect(await list()).toMatchObject([{ ...told, status: 'succeeded' }]);
  expect((await api.call(root.caller, 'GET', `/v1/workflows/${id}`)).json).toMatchObject({
    ...told,
    status: 'succeeded',
  });
});

test('a workflow that has ended stays ended, also when an older event arrives later', async () => {
  const [late, together] = [uuidv7(), uuidv7()];
  await tell(late, [['workflow.failed']]);
  await tell(late, [['workflow.accepted']]);
  await tell(together, [['workflow.succeeded'], ['workflow.accepted']]);
  expect((await list()).map(({ id, status }) => [id, status])).toEqual([
    [together, 'succeeded'],
    [late, 'failed'],
  ]);
});

test('neither another organisation nor the other mode sees a workflow', async () => {
  const [id, sandbox] = [uuidv7(), uuidv7()];
  await tell(id, [['workflow.accepted']]);
  await tell(sandbox, [['workflow.accepted', { mode: 'sandbox' }]]);
  const other = await api.bootstrap();
  expect(await list('', other)).toEqual([]);
  expect(refusalOf(await api.call(other.caller, 'GET', `/v1/workflows/${id}`))).toBe('404 workflow_not_found');
  expect((await list()).map((workflow) => workflow.id)).toEqual([id]);
  expect(refusalOf(await api.call(root.caller, 'GET', `/v1/workflows/${sandbox}`))).toBe('404 workflow_not_found');
});

test('any filters can be combined, and pages continue within them', async () => {
  const ids = Array.from({ length: 12 }, () => uuidv7());
  for (const [index, id] of ids.entries()) {
    const about = { resource: `/v1/sites/${index % 2}`, kind: index < 6 ? 'take_backup' : 'restore_backup' };
    const ends: readonly (EventType | null)[] = [null, 'workflow.failed', 'workflow.succeeded'];
    const end = ends[index % 3] ?? null;
    await tell(id, [['workflow.accepted', about], ...(end === null ? [] : [[end, about] as Turn])]);
  }
  const meant = ids.filter((_id, index) => index % 3 !== 2 && index % 2 === 0 && index < 6).reverse();
  const query = '?status=unfinished,failed&kind=take_backup&resource=/v1/sites/0';
  expect((await list(query)).map(({ id }) => id)).toEqual(meant);
  const first = await api.call(root.caller, 'GET', `/v1/workflows${query}&limit=1`);
  const { page } = first.json as { page: { next_cursor: string } };
  expect((await list(`${query}&limit=9&cursor=${page.next_cursor}`)).map(({ id }) => id)).toEqual(meant.slice(1));
  const [from, to] = [ids[3] ?? '', ids[8] ?? ''].map((id) => timeOfId(id).toISOString());
  const between = (await list(`?created_after=${from}&created_before=${to}`)).map(({ created_at }) => created_at);
  expect(between.every((at) => at >= String(from) && at < String(to))).toBe(true);
  expect(await list('?created_after=9999-12-31T23:59:59Z')).toEqual([]);
});

test('a workflow is listed once, although the query names its status several times', async () => {
  const id = uuidv7();
  await tell(id, [['workflow.failed']]);
  expect((await list('?status=failed,failed,unfinished,failed')).map((row) => row.id)).toEqual([id]);
});

test('an ended workflow is removed with its events, and a waiting workflow stays', async () => {
  const [ended, waiting, young] = [uuidv7(), uuidv7(), uuidv7()];
  await tell(ended, [['workflow.succeeded']]);
  await tell(waiting, [['workflow.needs_attention']]);
  await tell(young, [['workflow.succeeded']]);
  await api.rows(`UPDATE workflows SET updated_at = now() - interval '31 days' WHERE id = ANY ($1)`, [
    [ended, waiting],
  ]);
  const database = openDatabase(api.postgres.url, { max: 1, applicationName: 'test' });
  expect(await purgeWorkflows(database.sql(), 1_000)).toBe(1);
  expect(await purgeWorkflows(database.sql(), 1_000)).toBe(0);
  await database.close();
  expect((await list()).map(({ id }) => id)).toEqual([young, waiting]);
});
