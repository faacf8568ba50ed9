import { createSiteHostClient, type SiteHostClient } from '@drydock/agent/clients';
import { controlRoutesOf, createControlServer, ok } from '@drydock/agent/control';
import { hostStorageSchema, type SiteStorage, siteHostProtocol, siteStorageSchema } from '@drydock/agent/site';
import { tokenKeys } from '@drydock/service/access';
import { watchStorage } from '@drydock/service/effects';
import { closeServer, listen } from '@drydock/service/http';
import { createLog } from '@drydock/service/telemetry';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { refusalOf } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { newSecret } from '@drydock/testing/secret';
import { uuidv7 } from 'uuidv7';
import { givenSite, startApi } from '../../test/hosting-api';
import { type HostingDatabase, openDatabase } from '../context/database.store';
import { listLocalStorage } from '../providers/site-host.local';
import { watchedStorage } from './storage';

const owner = callerOf();
const limit = 10_000_000_000;
const countedAt = '2026-11-29T09:00:00.000Z';
/** The storage that the stand-in for the agent reports, by the id of the site. */
const counted: Record<string, SiteStorage> = {};
const closing: (() => Promise<unknown>)[] = [];
let api: ServiceApi;
let database: HostingDatabase;
let client: SiteHostClient;
beforeAll(async () => {
  const [secret, readerSecret] = [newSecret(), newSecret()];
  const { route, hostRoute } = controlRoutesOf(siteHostProtocol.things, {
    change: async (): Promise<never> => {
      throw new Error('this agent changes nothing');
    },
  });
  const server = createControlServer({
    protocol: siteHostProtocol,
    routes: [
      hostRoute('GET /storage', async () => ok({ sites: counted }), hostStorageSchema),
      route('GET /storage', async (id) => ok(counted[id]), siteStorageSchema),
    ],
    keys: tokenKeys(secret),
    readerKeys: tokenKeys(readerSecret),
    log: createLog({ service: 'site-host', level: 'silent' }),
    check: async () => undefined,
  });
  const { url } = await listen(server, 0);
  client = createSiteHostClient({ url, secret });
  api = await startApi(owner, { SITE_HOST_URL: url, SITE_HOST_READER_SECRET: readerSecret });
  database = openDatabase(api.postgres.url, { max: 2, applicationName: 'test' });
  closing.push(
    () => closeServer(server),
    () => client.close(),
    () => api.close(),
    () => database.close(),
  );
});
afterAll(async () => {
  for (const close of closing.reverse()) await close();
});

const partOf = (share: number): SiteStorage['files'] => ({
  state: share > 1.2 ? 'far_over' : share > 1 ? 'full' : 'within',
  bytes: Math.round(share * limit),
  counted_at: countedAt,
});
/** Makes the stand-in report these shares of the limit. Null stands for a part that has not been counted. */
function report(siteId: string, files: number | null, databaseShare: number | null): void {
  counted[siteId] = {
    limit_bytes: limit,
    files: files === null ? null : partOf(files),
    database: databaseShare === null ? null : partOf(databaseShare),
  };
}
const look = () =>
  watchStorage(
    watchedStorage(database, (signal) => listLocalStorage(client, signal)),
    new AbortController().signal,
  );

describe('GET /v1/sites/{siteId}/storage', () => {
  it.each([
    [0.5, 0.95, 'ok', 'nearly_full'],
    [1.1, 1.1, 'full', 'full'],
    [1.3, 1.3, 'full', 'closed'],
  ])('files that use %d and a database that uses %d of the limit are %s and %s', async (files, rows, first, second) => {
    const id = await givenSite(api, owner);
    report(id, files, rows);
    expect((await api.call('GET', `/v1/sites/${id}/storage`)).json).toEqual({
      limit_bytes: limit,
      files: { state: first, used_bytes: files * limit, counted_at: countedAt },
      database: { state: second, used_bytes: rows * limit, counted_at: countedAt },
    });
  });

  it('a part that has not been counted is null, and so is all of a site whose platform counts nothing', async () => {
    const [id, elsewhere] = [await givenSite(api, owner), await givenSite(api, owner)];
    report(id, null, null);
    await api.rows("UPDATE sites SET platform = 'ssh' WHERE id = $1", [elsewhere]);
    const nothing = { files: null, database: null };
    expect((await api.call('GET', `/v1/sites/${id}/storage`)).json).toEqual({ limit_bytes: limit, ...nothing });
    expect((await api.call('GET', `/v1/sites/${elsewhere}/storage`)).json).toEqual({ limit_bytes: null, ...nothing });
  });

  it('is answered 503 while the agent does not answer', async () => {
    const lonely = await startApi(owner);
    try {
      const answer = await lonely.call('GET', `/v1/sites/${await givenSite(lonely, owner)}/storage`);
      expect([refusalOf(answer), answer.json]).toMatchObject([
        '503 dependency_unavailable',
        { dependency: 'site-host' },
      ]);
    } finally {
      await lonely.close();
    }
  });
});

it('a site has one event for each change of its fuller part, and a site that is not on record has none', async () => {
  const [id, drill] = [await givenSite(api, owner), uuidv7()];
  report(drill, 1.1, 1.1);
  for (const [files, rows] of [
    [0.5, null],
    [0.5, 0.92],
    [1.1, 0.92],
    [1.1, 1.3],
    [0.5, 0.88],
    [0.5, 0.5],
  ] as const) {
    report(id, files, rows);
    await Promise.all([look(), look()]);
  }
  const events = ['nearly_full', 'full', 'closed', 'freed'].map((state) => `site.storage_${state}`);
  expect(await auditedOf(api, `/v1/sites/${id}`)).toEqual(events);
  expect(await auditedOf(api, `/v1/sites/${drill}`)).toEqual([]);
});

it('a list can be limited to the sites that are as full as they were last recorded', async () => {
  const caller = callerOf();
  const [empty, full, closed] = [
    await givenSite(api, caller),
    await givenSite(api, caller),
    await givenSite(api, caller),
  ];
  report(empty, 0.5, 0.5);
  report(full, 1.1, 0.5);
  report(closed, 0.5, 1.3);
  await look();
  const list = async (storage: string) => {
    const { json } = await api.call('GET', `/v1/sites?storage=${storage}`, { caller });
    return (json as { data: { id: string }[] }).data.map(({ id }) => id);
  };
  expect(await list('ok')).toEqual([empty]);
  expect(await list('full,closed')).toEqual([closed, full]);
  expect(await list('nearly_full')).toEqual([]);
});

it('a site of which only a part is counted, as after a restart of its agent, may become full and is not freed', async () => {
  const id = await givenSite(api, owner);
  const events: string[][] = [];
  for (const [files, rows] of [
    [0.5, 1.1],
    [0.5, null],
    [1.3, null],
    [0.5, 1.3],
    [1.1, null],
    [0.5, 0.5],
  ] as const) {
    report(id, files, rows);
    await look();
    events.push(await auditedOf(api, `/v1/sites/${id}`));
  }
  expect(events.map((sent) => sent.at(-1)?.replace('site.storage_', ''))).toEqual([
    'full',
    'full',
    'full',
    'closed',
    'closed',
    'freed',
  ]);
  expect(events.at(-1)).toHaveLength(3);
});
