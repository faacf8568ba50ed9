import type { DatabaseStorage } from '@drydock/agent/database';
import { watchStorage } from '@drydock/service/effects';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { refusalOf } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { type CountingAgent, startCountingAgent } from '../../test/counting-agent';
import { givenDatabase, startApi } from '../../test/databases-api';
import { type DatabasesDatabase, openDatabase } from '../context/database.store';
import { localDatabaseReader } from '../providers/database-provider.local';
import { watchedStorage } from './storage';

const owner = callerOf();
const limit = 20_000_000_000;
let agent: CountingAgent;
let api: ServiceApi;
let database: DatabasesDatabase;
beforeAll(async () => {
  agent = await startCountingAgent();
  api = await startApi(owner, agent.environment);
  database = openDatabase(api.postgres.url, { max: 2, applicationName: 'test' });
});
afterAll(async () => {
  await database.close();
  await api.close();
  await agent.close();
});

const usage = (share: number, change: Partial<DatabaseStorage> = {}): DatabaseStorage => ({
  state: share > 1.2 ? 'far_over' : share > 1 ? 'full' : 'within',
  limit_bytes: limit,
  data_bytes: Math.round(share * limit),
  log_bytes: null,
  counted_at: '2026-11-29T09:00:00.000Z',
  ...change,
});
const look = () =>
  watchStorage(watchedStorage(database, localDatabaseReader(agent.client)), new AbortController().signal);
const storageOf = async (id: string) => api.call('GET', `/v1/databases/${id}/storage`);

describe('GET /v1/databases/{databaseId}/storage', () => {
  it.each([
    ['less than nine tenths', usage(0.89), 'ok'],
    ['nine tenths', usage(0.9), 'nearly_full'],
    ['more than all', usage(1.01), 'full'],
    ['more than a fifth over', usage(1.21), 'closed'],
    ['nine tenths by the log of an upgrade', usage(0.5, { log_bytes: 0.9 * limit }), 'nearly_full'],
  ])('a database that uses %s', async (_what, storage, state) => {
    const id = await givenDatabase(api, owner);
    agent.counted[id] = storage;
    const { limit_bytes, data_bytes, log_bytes, counted_at } = storage;
    expect((await storageOf(id)).json).toEqual({ state, limit_bytes, data_bytes, log_bytes, counted_at });
  });

  it('has only the limit while the agent has not counted the database', async () => {
    const id = await givenDatabase(api, owner);
    const nothing = { state: null, data_bytes: null, log_bytes: null, counted_at: null };
    expect((await storageOf(id)).json).toEqual({ limit_bytes: limit, ...nothing });
  });

  it('is answered 503 while the agent does not answer', async () => {
    const lonely = await startApi(owner);
    try {
      const answer = await lonely.call('GET', `/v1/databases/${await givenDatabase(lonely, owner)}/storage`);
      expect([refusalOf(answer), answer.json]).toMatchObject([
        '503 dependency_unavailable',
        { dependency: 'database-host' },
      ]);
    } finally {
      await lonely.close();
    }
  });
});

describe('the events of a database that fills', () => {
  const eventsOf = async (id: string): Promise<string[]> =>
    (await auditedOf(api, `/v1/databases/${id}`)).map((action) => action.replace('database.storage_', ''));

  it.each([
    ['fills slowly and is emptied', [0.5, 0.95, 1.1, 1.3, 1.1, 0.95, 0.5], ['nearly_full', 'full', 'closed', 'freed']],
    ['fills at once', [0.5, 1.3, 0.1], ['closed', 'freed']],
    ['moves about nine tenths', [0.91, 0.89, 0.91, 0.86, 0.92], ['nearly_full']],
    ['fills twice', [0.95, 0.84, 0.95], ['nearly_full', 'nearly_full']],
  ])('that %s has one event for each change', async (_what, shares, events) => {
    const id = await givenDatabase(api, owner);
    for (const share of shares) {
      agent.counted[id] = usage(share);
      await look();
      await look();
    }
    expect(await eventsOf(id)).toEqual(events);
  });

  it('are written once by several workers, and a deleted database has none', async () => {
    const [full, deleted] = [await givenDatabase(api, owner), await givenDatabase(api, owner, { status: 'deleted' })];
    agent.counted[full] = usage(1.1);
    agent.counted[deleted] = usage(1.1);
    agent.counted[uuidv7()] = usage(1.1);
    await Promise.all([look(), look(), look()]);
    expect([await eventsOf(full), await eventsOf(deleted)]).toEqual([['full'], []]);
  });

  it('do not come from an agent that has just started and has counted nothing', async () => {
    const id = await givenDatabase(api, owner);
    agent.counted[id] = usage(1.1);
    await look();
    delete agent.counted[id];
    await look();
    agent.counted[id] = usage(1.1);
    await look();
    expect(await eventsOf(id)).toEqual(['full']);
  });
});

it('a list can be limited to the databases that are as full as they were last recorded', async () => {
  const caller = callerOf();
  const [empty, full, closed] = [
    await givenDatabase(api, caller),
    await givenDatabase(api, caller),
    await givenDatabase(api, caller),
  ];
  agent.counted[empty] = usage(0.5);
  agent.counted[full] = usage(1.1);
  agent.counted[closed] = usage(1.3);
  await look();
  const list = async (storage: string) => {
    const { json } = await api.call('GET', `/v1/databases?storage=${storage}`, { caller });
    return (json as { data: { id: string }[] }).data.map(({ id }) => id);
  };
  expect(await list('ok')).toEqual([empty]);
  expect(await list('full,closed')).toEqual([closed, full]);
  expect(await list('nearly_full')).toEqual([]);
});
