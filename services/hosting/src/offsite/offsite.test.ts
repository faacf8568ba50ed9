import { refusalOf } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { giveNoTimeToStart, givenSite, startApi } from '../../test/hosting-api';

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

describe('a copy that is named', () => {
  const given = async (): Promise<string> => {
    const siteId = await givenSite(api, owner);
    await api.rows(
      `INSERT INTO offsite_destinations (id, site_id, org_id, mode, state, endpoint, region, bucket, prefix, credentials, encryption_key_id)
       VALUES (gen_random_uuid(), $1, $2, 'live', 'active', 'https://storage.example.com', 'x', 'bucket', '', 'x', 'k')`,
      [siteId, owner.orgId],
    );
    return siteId;
  };

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
