import type { Event } from '@drydock/contracts/keys/events';
import type { Caller } from '@drydock/service/access';
import { createLog } from '@drydock/service/telemetry';
import { refusalOf } from '@drydock/service/testing/problem';
import { until } from '@drydock/testing/wait';
import { uuidv7 } from 'uuidv7';
import { type GoodKey, type KeysApi, newestEventOf, startKeys } from '../../test/keys-api';
import type { HandlerContext } from '../context/context';
import { type KeysDatabase, openDatabase } from '../context/database.store';
import { purgeEvents } from '../webhooks/delivery.store';
import { listEvents, storeEvents } from './event.store';
import { watchEvents } from './read-events';
import { createSequencer, sequenceEvents } from './sequencer';

let api: KeysApi;
let root: GoodKey;
beforeAll(async () => {
  api = await startKeys();
});
beforeEach(async () => {
  root = await api.bootstrap();
  await newestEventOf(api, root.caller);
});
afterAll(() => api.close());

const read = async (caller: Caller, query = ''): Promise<Event[]> => {
  const answer = await api.call(caller, 'GET', `/v1/events${query}`);
  expect(answer.status).toBe(200);
  return (answer.json as { data: Event[] }).data;
};
const turnOf = (orgId: string, more: object = {}) => ({
  id: uuidv7(),
  type: 'workflow.succeeded',
  at: new Date().toISOString(),
  org_id: orgId,
  resource: `/v1/sites/${uuidv7()}`,
  actor_key_id: null,
  workflow: { id: uuidv7(), kind: 'restore_backup', status: 'succeeded', error: null },
  ...more,
});
const deliver = (entries: unknown[], service = 'hosting', issuer = 'hosting') =>
  api.internal('/internal/events', { service, entries }, { issuer, secret: api.secrets.audit });
const visible = (caller: Caller, count: number) =>
  until(async () => (await read(caller, '?limit=100')).length >= count);

test('changes of keys and of other services, and states of workflows, are events, newest first', async () => {
  const { orgId } = root.caller;
  const { id } = await api.mint(root.caller);
  const atOnce = {
    id: uuidv7(),
    org_id: orgId,
    mode: 'live',
    actor_key_id: root.id,
    action: 'card.create',
    target: '/v1/agency/boards/x',
  };
  const audit = { entries: [{ ...atOnce, workflow_id: null, at: '2026-01-02T03:04:05.678Z' }], service: 'hosting' };
  await api.internal('/internal/audit', audit, { issuer: 'hosting', secret: api.secrets.audit });
  const turn = turnOf(orgId);
  expect((await deliver([{ ...turn, mode: 'live' }])).status).toBe(204);
  await visible(root.caller, 5);
  const events = await read(root.caller);
  expect(events.map(({ type, resource }) => [type, resource])).toEqual([
    ['workflow.succeeded', turn.resource],
    ['card.create', '/v1/agency/boards/x'],
    ['api_key.create', `/v1/api-keys/${id}`],
    ['api_key.create', `/v1/api-keys/${root.id}`],
    ['org.create', `/v1/orgs/${orgId}`],
  ]);
  expect(events[0]).toEqual(turn);
  expect((await api.call(root.caller, 'GET', `/v1/events/${turn.id}`)).json).toEqual(turn);
});

test('nobody sees the events of another organisation or of the other mode, nor finds them by their ids', async () => {
  const stranger = await api.bootstrap();
  const sandbox = await api.mint(root.caller, { sandbox: true, scopes: ['audit.view'] });
  const [live, tried] = [turnOf(root.caller.orgId), turnOf(root.caller.orgId)];
  await deliver([
    { ...live, mode: 'live' },
    { ...tried, mode: 'sandbox' },
  ]);
  await until(async () => (await read(sandbox.caller)).length > 0);
  expect(await read(sandbox.caller, '?type=workflow.*')).toEqual([tried]);
  expect(await read(root.caller, '?type=workflow.*')).toEqual([live]);
  expect(await read(stranger.caller, '?type=workflow.*')).toEqual([]);
  for (const caller of [stranger.caller, sandbox.caller]) {
    expect(refusalOf(await api.call(caller, 'GET', `/v1/events/${live.id}`))).toBe('404 event_not_found');
    expect(refusalOf(await api.call(caller, 'GET', `/v1/events?after=${live.id}`))).toBe('422 invalid_request');
  }
});

test('a repeated delivery changes nothing, and a service delivers only its own events', async () => {
  const turn = turnOf(root.caller.orgId);
  await deliver([{ ...turn, mode: 'live' }]);
  await deliver([{ ...turn, mode: 'live', type: 'workflow.failed' }]);
  expect((await deliver([], 'compute')).status).toBe(422);
  expect((await deliver([], 'hosting', 'compute')).status).toBe(401);
  await until(async () => (await read(root.caller, '?type=workflow.*')).length > 0);
  expect(await read(root.caller, '?type=workflow.*')).toEqual([turn]);
});

test('a list is filtered by type and resource in pages, and a reader continues after its last event', async () => {
  const { orgId } = root.caller;
  const resource = `/v1/sites/${uuidv7()}`;
  const turns = Array.from({ length: 9 }, (_, index) =>
    turnOf(orgId, {
      type: index % 3 === 0 ? 'workflow.failed' : 'workflow.succeeded',
      ...(index % 2 === 0 ? { resource } : {}),
    }),
  );
  await deliver(turns.map((turn) => ({ ...turn, mode: 'live' })));
  await visible(root.caller, 11);
  const idsOf = (events: readonly { id: string }[]) => events.map(({ id }) => id);
  const newest = [...turns].reverse();
  const failed = newest.filter(({ type }) => type === 'workflow.failed');
  expect(idsOf(await read(root.caller, '?type=workflow.failed'))).toEqual(idsOf(failed));
  expect(idsOf(await read(root.caller, '?type=workflow.*'))).toEqual(idsOf(newest));
  expect(await read(root.caller, '?type=card.create,org.create')).toHaveLength(1);
  expect(idsOf(await read(root.caller, `?resource=${resource}`))).toEqual(
    idsOf(newest.filter((turn) => turn.resource === resource)),
  );
  expect(idsOf(await read(root.caller, `?resource=${resource}&type=workflow.failed`))).toEqual(
    idsOf(failed.filter((turn) => turn.resource === resource)),
  );
  expect(idsOf(await read(root.caller, `?after=${turns[5]?.id}`))).toEqual(idsOf(turns.slice(6)));
  const pages: string[] = [];
  for (let query: string | null = '?type=workflow.*&limit=4'; query !== null; ) {
    const answer = await api.call(root.caller, 'GET', `/v1/events${query}`);
    const { data, page } = answer.json as { data: Event[]; page: { next_cursor: string | null } };
    pages.push(...idsOf(data));
    query = page.next_cursor === null ? null : `?type=workflow.*&limit=4&cursor=${page.next_cursor}`;
  }
  expect(pages).toEqual(idsOf(newest));
  for (const query of ['?type=workflow.succeded', '?type=', '?type=card.create,', '?after=x', `?after=${uuidv7()}`])
    expect(refusalOf(await api.call(root.caller, 'GET', `/v1/events${query}`))).toBe('422 invalid_request');
});

test('readers see every event once and in order despite late commits and several sequencers', async () => {
  const scope = { ...root.caller, types: null, resource: null };
  const databases = Array.from({ length: 3 }, () =>
    openDatabase(api.postgres.url, { max: 6, applicationName: 'test' }),
  );
  const [reader = openDatabase(api.postgres.url, { max: 1, applicationName: 'test' })] = databases;
  const [newest] = await listEvents(reader.sql(), scope, { order: 'newest', position: null, take: 1 });
  const [seen, wanted]: [string[], string[]] = [[], []];
  let [isWritten, isSequenced] = [false, false];
  const write = ({ transaction }: KeysDatabase, round: number): Promise<void> =>
    transaction(async (tx) => {
      const event = {
        ...turnOf(root.caller.orgId),
        type: 'workflow.failed' as const,
        mode: 'live' as const,
        workflow: null,
      };
      wanted.push(event.id);
      await storeEvents(tx, [event]);
      await new Promise((resolve) => setTimeout(resolve, (round * 7) % 11));
    });
  const sequence = async (database: KeysDatabase): Promise<void> => {
    while (!isWritten) await sequenceEvents(database);
  };
  const sequencing = [...databases, ...databases].map(sequence);
  const reading = (async () => {
    for (let position = newest?.seq ?? '0', isLast = false; !isLast; ) {
      isLast = isSequenced;
      const rows = await listEvents(reader.sql(), scope, { order: 'oldest', position, take: 1_000 });
      seen.push(...rows.map(({ id }) => id));
      position = rows.at(-1)?.seq ?? position;
    }
  })();
  for (let round = 0; round < 100; round += 1)
    await Promise.all(databases.flatMap((database) => [write(database, round), write(database, round + 3)]));
  isWritten = true;
  await Promise.all(sequencing);
  await sequenceEvents(reader);
  isSequenced = true;
  await reading;
  expect(seen).toHaveLength(600);
  expect([...seen].sort()).toEqual([...wanted].sort());
  for (const database of databases) await database.close();
});

test('exactly the events that are older than 30 days are removed', async () => {
  const daysAgo = (days: number) => ({ at: new Date(Date.now() - days * 86_400_000).toISOString() });
  const [old, young] = [turnOf(root.caller.orgId, daysAgo(31)), turnOf(root.caller.orgId, daysAgo(29))];
  await deliver([old, young].map((turn) => ({ ...turn, mode: 'live' })));
  // The purge skips locked rows, and the service locks events while it gives them numbers. So the test waits for the
  // numbers.
  const numbered = 'SELECT id FROM events WHERE id = ANY ($1) AND seq IS NOT NULL';
  await until(async () => (await api.rows(numbered, [[old.id, young.id]])).length === 2);
  const database = openDatabase(api.postgres.url, { max: 1, applicationName: 'test' });
  expect(await purgeEvents(database, 1_000)).toBeGreaterThan(0);
  expect(await api.rows('SELECT id FROM events WHERE id = ANY ($1)', [[old.id, young.id]])).toEqual([{ id: young.id }]);
  await database.close();
});

test('a reader whose filter matches nothing gets a newer place from a stream and from a list, and misses nothing', async () => {
  const { orgId } = root.caller;
  const [start] = await read(root.caller, '?limit=1');
  const wanted = turnOf(orgId, { type: 'workflow.failed' });
  const newest = turnOf(orgId);
  await deliver([wanted, newest].map((turn) => ({ ...turn, mode: 'live' })));
  await visible(root.caller, 4);
  const database = openDatabase(api.postgres.url, { max: 2, applicationName: 'test' });
  const sequencer = createSequencer(database, createLog({ service: 'test', level: 'silent' }));
  const context = { database, sequencer } as Partial<HandlerContext> as HandlerContext;
  const type = 'workflow.failed,card.create';
  const ending = new AbortController();
  const asked = { caller: root.caller, query: { type }, lastEventId: start?.id, signal: ending.signal };
  const places: unknown[] = [];
  for await (const { id, event } of await watchEvents(context).stream(asked as never)) {
    places.push([event, id]);
    if (event !== 'ready') ending.abort();
  }
  expect(places).toEqual([
    ['ready', start?.id],
    ['workflow.failed', wanted.id],
    ['ready', newest.id],
  ]);
  await database.close();
  const pageOf = async (query: string) =>
    (await api.call(root.caller, 'GET', `/v1/events${query}`)).json as { data: Event[]; next_after?: string | null };
  expect(await pageOf(`?type=${type}&after=${wanted.id}`)).toMatchObject({ data: [], next_after: newest.id });
  expect(await pageOf(`?type=${type}&after=${newest.id}`)).toMatchObject({ data: [], next_after: newest.id });
  expect(await pageOf(`?after=${start?.id}`)).toMatchObject({ data: [wanted, newest], next_after: newest.id });
  expect(await pageOf(`?after=${start?.id}&limit=1`)).toMatchObject({ data: [wanted], next_after: null });
  expect(await pageOf('?limit=1')).toMatchObject({ data: [newest], next_after: null });
});

test('a reader goes on after the last event that was removed; one that may have missed events is refused', async () => {
  const turns = [0, 1, 2].map(() => turnOf(root.caller.orgId));
  const [missed, last, next] = turns as [Event, Event, Event];
  await deliver([missed, last].map((turn) => ({ ...turn, mode: 'live' })));
  await visible(root.caller, 4);
  await api.rows(`UPDATE events SET at = now() - interval '31 days' WHERE org_id = $1`, [root.caller.orgId]);
  const database = openDatabase(api.postgres.url, { max: 2, applicationName: 'test' });
  await until(async () => {
    await purgeEvents(database, 1_000);
    return (await read(root.caller)).length === 0;
  });
  expect(await read(root.caller, `?after=${last.id}`)).toEqual([]);
  await deliver([{ ...next, mode: 'live' }]);
  await visible(root.caller, 1);
  expect(await read(root.caller, `?after=${last.id}`)).toEqual([next]);
  expect(refusalOf(await api.call(root.caller, 'GET', `/v1/events?after=${missed.id}`))).toBe('422 invalid_request');
  const stranger = await api.bootstrap();
  expect(refusalOf(await api.call(stranger.caller, 'GET', `/v1/events?after=${last.id}`))).toBe('422 invalid_request');
  await database.close();
});

test("another organisation's events cost a waiting stream no query, and numbers of another process reach it", async () => {
  const stranger = await api.bootstrap();
  // From here on only the sequencer of this test gives numbers.
  await api.stop();
  const database = openDatabase(api.postgres.url, { max: 4, applicationName: 'test' });
  let queries = 0;
  const counted: KeysDatabase = {
    ...database,
    sql: (tx) => {
      queries += 1;
      return database.sql(tx);
    },
  };
  const sequencer = createSequencer(database, createLog({ service: 'test', level: 'silent' }));
  sequencer.start();
  const write = async ({ orgId }: Caller): Promise<string> => {
    const event = { ...turnOf(orgId), type: 'workflow.failed' as const, mode: 'live' as const, workflow: null };
    await database.transaction((tx) => storeEvents(tx, [event]));
    sequencer.ring();
    const numbered = 'SELECT id FROM events WHERE id = $1 AND seq IS NOT NULL';
    await until(async () => (await database.sql().query(numbered, [event.id])).length === 1);
    return event.id;
  };
  const ending = new AbortController();
  const context = { database: counted, sequencer } as Partial<HandlerContext> as HandlerContext;
  const asked = { caller: root.caller, query: {}, lastEventId: undefined, signal: ending.signal };
  const stream = await watchEvents(context).stream(asked as never);
  const next = async () => (await stream.next()).value?.id;
  await next();
  const first = next();
  const firstId = await write(root.caller);
  expect(await first).toBe(firstId);
  const before = queries;
  const second = next();
  for (let count = 0; count < 10; count += 1) await write(stranger.caller);
  const secondId = await write(root.caller);
  expect(await second).toBe(secondId);
  // One query before the wait and one after it. A third is possible if the number of the first event woke it twice.
  expect(queries - before).toBeLessThanOrEqual(3);
  const third = next();
  const strange = turnOf(root.caller.orgId);
  await database.transaction(async (tx) => {
    await storeEvents(tx, [{ ...strange, type: 'workflow.failed', mode: 'live', workflow: null }]);
    await database
      .sql(tx)
      .query(`UPDATE events SET seq = nextval('event_seq') WHERE id = $1 RETURNING seq`, [strange.id]);
  });
  expect(await third).toBe(strange.id);
  ending.abort();
  await sequencer.stop();
  await database.close();
});
