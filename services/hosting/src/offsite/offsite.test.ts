import type { SiteOffsite } from '@drydock/contracts/hosting/offsite';
import { refusalOf } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { giveNoTimeToStart, givenSite, startApi } from '../../test/hosting-api';
import { openDatabase } from '../context/database.store';
import { findActive, listCopies } from './offsite.store';

const owner = callerOf();
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(owner, { DRYDOCK_OFFSITE_ALLOW: '127.0.0.1:9000' });
  await giveNoTimeToStart(api);
});
afterAll(() => api.close());

const place = {
  endpoint: 'https://storage.example.com',
  region: 'eu-central-1',
  bucket: 'shop-copies',
  prefix: 'drydock',
  access_key_id: 'KEY',
  secret_access_key: 'secret',
};
const pathOf = (siteId: string) => `/v1/sites/${siteId}/offsite`;
const put = (siteId: string, change: object, options: object = {}) =>
  api.call('PUT', pathOf(siteId), { body: { ...place, ...change }, ...options });

describe('a site without a storage of its customer’s', () => {
  it('says so, and lists nothing', async () => {
    const siteId = await givenSite(api, owner);
    const answer = await api.call('GET', pathOf(siteId));
    expect([answer.status, answer.json]).toEqual([
      200,
      {
        configured: false,
        destination: null,
        encryption: null,
        in_progress: false,
        last_copy_at: null,
        last_error_code: '',
        copies: [],
        page: { next_cursor: null, has_more: false, limit: 50 },
        restore: null,
      },
    ]);
  });

  it.each([
    ['POST', '/copies', { kind: 'full' }],
    ['POST', '/copies', { kind: 'incremental' }],
    ['POST', '/restore', { copy_id: '019a0000-0000-7000-8000-000000000000' }],
  ])('refuses %s %s %j', async (method, rest, body) => {
    const siteId = await givenSite(api, owner);
    const answer = await api.call(method, pathOf(siteId) + rest, { body });
    expect([answer.status, answer.json]).toMatchObject([422, { code: 'offsite_not_configured' }]);
  });

  it('tells a preflight the same refusal, and has nothing to remove', async () => {
    const siteId = await givenSite(api, owner);
    const preflight = await api.call('POST', `${pathOf(siteId)}/restore/preflight`, { body: { copy_id: 'x' } });
    expect([preflight.status, preflight.json]).toMatchObject([
      200,
      { point: null, space: null, refusal: { code: 'offsite_not_configured', status: 422 }, undo: false },
    ]);
    const removed = await api.call('DELETE', pathOf(siteId));
    expect([removed.status, removed.text]).toEqual([204, '']);
  });
});

describe('a storage that is named', () => {
  it.each([
    ['an address of ours', { endpoint: 'https://10.0.0.1' }],
    ['the metadata service', { endpoint: 'https://169.254.169.254' }],
    ['loopback as one number', { endpoint: 'https://2130706433' }],
    ['loopback in octal', { endpoint: 'https://0177.0.0.1' }],
    ['loopback as a mapped address', { endpoint: 'https://[::ffff:127.0.0.1]' }],
    ['http', { endpoint: 'http://storage.example.com' }],
    ['another port than the one that is allowed', { endpoint: 'http://127.0.0.1:9001' }],
  ])('is refused by %s before anything is accepted', async (_what, change) => {
    const siteId = await givenSite(api, owner);
    expect(await put(siteId, change)).toMatchObject({ status: 422, json: { code: 'offsite_endpoint_refused' } });
    expect(await api.rows('SELECT 1 FROM workflow WHERE subject_id = $1', [siteId])).toEqual([]);
  });

  it.each([
    { endpoint: 'ftp://storage.example.com' },
    { endpoint: 'https://user:password@storage.example.com' },
    { endpoint: 'https://storage.example.com/path' },
    { endpoint: 'https://storage.example.com/?x=1' },
    { endpoint: 'https://storage.example.com#' },
    { endpoint: 'not a URL' },
    { bucket: 'arn:aws:s3:eu-central-1:1:accesspoint/x' },
    { bucket: 'Upper' },
    { bucket: '../other' },
    { bucket: 'a..b' },
    { prefix: '../up' },
    { prefix: '/absolute' },
    { prefix: 'a//b' },
    { region: 'eu/../us' },
    { access_key_id: 'two\nlines' },
    { secret_access_key: '' },
    { session_token: 'extra' },
  ])('is not valid with %j', async (change) => {
    const siteId = await givenSite(api, owner);
    expect(await put(siteId, change)).toMatchObject({ status: 422, json: { code: 'invalid_request' } });
  });

  it('of a sandbox site may only be an emulator', async () => {
    const caller = { ...owner, mode: 'sandbox' as const };
    const siteId = await givenSite(api, caller);
    expect(await put(siteId, {}, { caller })).toMatchObject({
      status: 422,
      json: { code: 'offsite_endpoint_refused' },
    });
  });

  it('is forgotten with its credentials when no worker starts the probe in time', async () => {
    const siteId = await givenSite(api, owner);
    const answer = await put(siteId, {});
    expect([answer.status, answer.json]).toMatchObject([503, { code: 'dependency_unavailable' }]);
    expect(answer.headers['retry-after']).toBe('5');
    expect(await api.rows('SELECT 1 FROM offsite_destinations WHERE site_id = $1', [siteId])).toEqual([]);
    expect((await api.call('GET', pathOf(siteId))).json).toMatchObject({ configured: false, in_progress: false });
  });
});

describe('whose it is', () => {
  const calls: ReadonlyArray<[string, string, object | undefined]> = [
    ['GET', '', undefined],
    ['PUT', '', place],
    ['DELETE', '', undefined],
    ['POST', '/copies', { kind: 'full' }],
    ['POST', '/restore', { copy_id: 'x' }],
    ['POST', '/restore/preflight', { copy_id: 'x' }],
  ];
  it.each(calls)(
    '%s %s of another organisation’s or the other mode’s site is the one 404',
    async (method, rest, body) => {
      const siteId = await givenSite(api, owner);
      for (const caller of [callerOf(), { ...owner, mode: 'sandbox' as const }]) {
        expect(refusalOf(await api.call(method, pathOf(siteId) + rest, { caller, body }))).toBe('404 site_not_found');
      }
    },
  );

  it.each(calls)('%s %s without its permission is 403, even where there is no site', async (method, rest, body) => {
    const caller = { ...owner, scopes: ['databases.view'] as const };
    expect(refusalOf(await api.call(method, `/v1/sites/nope/offsite${rest}`, { caller, body }))).toBe(
      '403 permission_denied',
    );
  });
});

/** A site with a destination. Resolves with its id. */
const given = async (): Promise<string> => {
  const siteId = await givenSite(api, owner);
  await api.rows(
    `INSERT INTO offsite_destinations (id, site_id, org_id, mode, state, endpoint, region, bucket, prefix, credentials, encryption_key_id)
     VALUES (gen_random_uuid(), $1, $2, 'live', 'active', 'https://storage.example.com', 'x', 'bucket', '', 'x', 'k')`,
    [siteId, owner.orgId],
  );
  return siteId;
};

/** Puts a chain of completed copies on record, the full copy first. Resolves with their ids. */
async function giveChain(siteId: string, links: number): Promise<string[]> {
  const ids = Array.from({ length: links }, () => uuidv7());
  await api.rows(
    `INSERT INTO offsite_copies (id, destination_id, site_id, org_id, mode, kind, status, parent_id, sequence, workflow_id,
       object_key, size_bytes, raw_bytes, manifest_sha256, manifest_mac, completed_at, verified_at)
     SELECT t.id, d.id, d.site_id, d.org_id, d.mode,
       (CASE WHEN t.parent_id IS NULL THEN 'full' ELSE 'incremental' END)::offsite_copy_kind, 'completed', t.parent_id, t.n,
       t.id, d.site_id || '/' || t.id, 1, 1, repeat('a', 64), repeat('a', 64), now(), now()
     FROM offsite_destinations d, unnest($2::uuid[], $3::uuid[]) WITH ORDINALITY AS t(id, parent_id, n) WHERE d.site_id = $1`,
    [siteId, ids, [null, ...ids.slice(0, -1)]],
  );
  await api.rows('UPDATE sites SET backup_sequence = $2 WHERE id = $1', [siteId, links]);
  return ids;
}

/** Puts failed full copies on record, newer than all others. Resolves with their ids, the newest first. */
async function giveFailed(siteId: string, copies: number): Promise<string[]> {
  const ids = Array.from({ length: copies }, () => uuidv7());
  await api.rows(
    `INSERT INTO offsite_copies (id, destination_id, site_id, org_id, mode, kind, status, sequence, workflow_id, error_code)
     SELECT t.id, d.id, d.site_id, d.org_id, d.mode, 'full', 'failed', s.backup_sequence + t.n, t.id, 'step_failed'
     FROM offsite_destinations d JOIN sites s ON s.id = d.site_id, unnest($2::uuid[]) WITH ORDINALITY AS t(id, n)
     WHERE d.site_id = $1`,
    [siteId, ids],
  );
  await api.rows('UPDATE sites SET backup_sequence = backup_sequence + $2 WHERE id = $1', [siteId, copies]);
  return ids.reverse();
}

describe('a copy that is named', () => {
  it.each([
    '019a0000-0000-7000-8000-000000000000',
    '../../etc/passwd',
    'latest',
    '😀',
    'two\nlines',
    '%00',
    '{"not":""}',
  ])('as %j is no copy of this site', async (copyId) => {
    const answer = await api.call('POST', `${pathOf(await given())}/restore`, { body: { copy_id: copyId } });
    expect([answer.status, answer.json]).toMatchObject([422, { code: 'copy_not_found' }]);
  });

  it.each([
    { copy_id: '' },
    { copy_id: 'x'.repeat(4_000) },
    { copy_id: null },
    { copy_id: { not: '' } },
    {},
    { copy_id: 'x', kind: 'full' },
  ])('as %j is no request', async (body) => {
    const answer = await api.call('POST', `${pathOf(await given())}/restore`, { body });
    expect([answer.status, answer.json]).toMatchObject([422, { code: 'invalid_request' }]);
  });

  it('by an incremental copy needs a whole chain to continue', async () => {
    const answer = await api.call('POST', `${pathOf(await given())}/copies`, { body: { kind: 'incremental' } });
    expect([answer.status, answer.json]).toMatchObject([422, { code: 'copy_chain_incomplete' }]);
  });
});

describe('the copies on record', () => {
  it.each([
    [99, 'incremental', 'a chain of 99 copies is continued'],
    [100, 'full', 'a chain of 100 copies is not continued: an incremental copy is taken as a full one'],
  ])('%d: %s; %s', async (links, kind) => {
    const siteId = await given();
    const chain = await giveChain(siteId, links);
    const answer = await api.call('POST', `${pathOf(siteId)}/copies`, { body: { kind: 'incremental' } });
    expect(answer.status).toBe(202);
    const taken = await api.rows(
      "SELECT kind, parent_id FROM offsite_copies WHERE site_id = $1 AND status = 'running'",
      [siteId],
    );
    expect(taken).toEqual([{ kind, parent_id: kind === 'full' ? null : chain.at(-1) }]);
    const [input] = await api.rows<{ input: object }>('SELECT input FROM workflow WHERE subject_id = $1', [siteId]);
    expect(input).toMatchObject({ input: { kind } });
  });

  it('are listed and named with the failed ones, which the rules of a request do not load', async () => {
    const siteId = await given();
    const chain = await giveChain(siteId, 2);
    const failed = await giveFailed(siteId, 3);
    const read = async (search: string) => (await api.call('GET', pathOf(siteId) + search)).json as SiteOffsite;
    const first = await read('?limit=4');
    const second = await read(`?limit=4&cursor=${first.page.next_cursor}`);
    const shown = [...first.copies, ...second.copies];
    expect(shown.map(({ id, status }) => `${id} ${status}`)).toEqual([
      ...failed.map((id) => `${id} failed`),
      ...[...chain].reverse().map((id) => `${id} completed`),
    ]);
    expect(shown[3]).toMatchObject({ base_id: chain[0], depends_on: [chain[0]] });
    expect(first.last_copy_at).toEqual(second.last_copy_at);
    for (const id of [...failed, ...chain])
      expect((await api.call('GET', `${pathOf(siteId)}/copies/${id}`)).json).toMatchObject({ id });
    const database = openDatabase(api.postgres.url, { max: 1 });
    const destination = await findActive(database.pool, { ...owner, id: siteId });
    if (destination === null) throw new Error('no destination');
    const loaded = await listCopies(database.pool, destination);
    await database.close();
    expect(loaded.map(({ id }) => id)).toEqual([...chain].reverse());
  });
});
