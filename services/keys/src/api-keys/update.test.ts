import type { ApiKeyDetail } from '@drydock/contracts/keys/api-keys';
import { refusalOf } from '@drydock/service/testing/problem';
import { type GoodKey, type KeysApi, startKeys } from '../../test/keys-api';
import { openDatabase } from '../context/database.store';
import { keepHouse } from '../housekeeping';

let api: KeysApi;
let root: GoodKey;
beforeAll(async () => {
  api = await startKeys();
  root = await api.bootstrap();
});
afterAll(() => api.close());

const change = ({ id }: { id: string }, body: object, by = root) =>
  api.call(by.caller, 'PATCH', `/v1/api-keys/${id}`, { body });
const changed = async (key: { id: string }, body: object, by = root): Promise<ApiKeyDetail> => {
  const answer = await change(key, body, by);
  expect([answer.status, answer.text]).toEqual([200, expect.any(String)]);
  return answer.json as ApiKeyDetail;
};
const read = async ({ id }: { id: string }) =>
  (await api.call(root.caller, 'GET', `/v1/api-keys/${id}`)).json as ApiKeyDetail;
const inAnHour = () => new Date(Date.now() + 3_600_000).toISOString();
const rights = ['apikeys.manage', 'sites.view'];

test('a key shows its creator and has no limits until it is changed; a field that is not sent stays', async () => {
  const key = await api.mint(root.caller, { name: 'deploy', scopes: rights });
  expect(await read(key)).toMatchObject({ created_by: root.id, expires_at: null, allowed_ips: [], scopes: rights });
  const expires_at = inAnHour();
  expect(
    await changed(key, { expires_at, allowed_ips: ['203.0.113.7', '2001:db8::/32', '203.0.113.7'] }),
  ).toMatchObject({
    ...{ name: 'deploy', scopes: rights, expires_at, allowed_ips: ['203.0.113.7', '2001:db8::/32'] },
  });
  expect(await changed(key, { name: 'deploy 2', scopes: ['sites.view'] })).toMatchObject({
    name: 'deploy 2',
    scopes: ['sites.view'],
    expires_at,
  });
  expect(await read(key)).toMatchObject({
    name: 'deploy 2',
    scopes: ['sites.view'],
    expires_at,
    allowed_ips: ['203.0.113.7', '2001:db8::/32'],
  });
  expect(await changed(key, { expires_at: null, allowed_ips: [] })).toMatchObject({
    expires_at: null,
    allowed_ips: [],
  });
});

test('from the answer on, a gateway hears the new scopes and addresses of a changed key', async () => {
  const key = await api.mint(root.caller, { scopes: rights });
  await changed(key, { scopes: ['sites.view'], allowed_ips: ['203.0.113.0/24'] });
  expect(await api.verify(key.token)).toMatchObject({
    valid: true,
    scopes: ['sites.view'],
    allowed_ips: ['203.0.113.0/24'],
  });
  await changed(key, { allowed_ips: [] });
  expect(await api.verify(key.token)).not.toHaveProperty('allowed_ips');
});

test('an expired key is invalid, is in no list, and cannot be changed back', async () => {
  const key = await api.mint(root.caller);
  await changed(key, { expires_at: inAnHour() });
  expect((await api.verify(key.token)).valid).toBe(true);
  await api.rows(`UPDATE api_keys SET expires_at = now() - interval '1 ms' WHERE id = $1`, [key.id]);
  expect(await api.verify(key.token)).toEqual({ valid: false });
  expect(refusalOf(await change(key, { expires_at: null }))).toBe('404 api_key_not_found');
  const database = openDatabase(api.postgres.url, { max: 2, applicationName: 'test' });
  await keepHouse(database);
  await database.close();
  expect(await api.rows('SELECT revoked_at = expires_at AS ended FROM api_keys WHERE id = $1', [key.id])).toEqual([
    { ended: true },
  ]);
  expect((await api.call(root.caller, 'GET', '/v1/api-keys')).text).not.toContain(key.id);
});

test.each([
  ['a permission that it does not have', { scopes: ['sites.view', 'sites.create'] }, '422 scope_widened'],
  ['a permission that there is not', { scopes: ['sites.rule'] }, '422 scope_widened'],
  ['a moment that is past', { expires_at: '2020-01-01T00:00:00Z' }, '422 invalid_request'],
  ['a moment that is none', { expires_at: 'tomorrow' }, '422 invalid_request'],
  ['an address that is none', { allowed_ips: ['203.0.113'] }, '422 invalid_request'],
  ['a network that is none', { allowed_ips: ['203.0.113.0/33'] }, '422 invalid_request'],
  ['a name in the place of an address', { allowed_ips: ['example.com'] }, '422 invalid_request'],
  [
    'twenty-one addresses',
    { allowed_ips: Array.from({ length: 21 }, (_, index) => `203.0.113.${index}`) },
    '422 invalid_request',
  ],
])('%s is refused, and nothing is changed', async (_what, body, refusal) => {
  const key = await api.mint(root.caller, { scopes: rights });
  // A key's first use is recorded with a delay, so `last_used_at` is not compared.
  const { last_used_at: _, ...before } = Object(await read(key));
  expect(refusalOf(await change(key, { name: 'never', ...body }))).toBe(refusal);
  expect(await read(key)).toMatchObject(before);
});

test('a key may limit itself, but cannot lift its limits, neither on itself nor through another key', async () => {
  const key = await api.mint(root.caller, { scopes: rights });
  const expires_at = inAnHour();
  await changed(key, { expires_at, allowed_ips: ['203.0.113.0/24'] }, key);
  const later = new Date(Date.parse(expires_at) + 1).toISOString();
  for (const body of [{ expires_at: null }, { expires_at: later }, { allowed_ips: [] }, { allowed_ips: ['0.0.0.0/0'] }])
    expect(refusalOf(await change(key, body, key))).toBe('403 own_limits');
  // A limited key may make its own limits stricter.
  await changed(key, { expires_at: new Date(Date.parse(expires_at) - 1).toISOString() }, key);
  const other = await api.mint(root.caller, { scopes: rights });
  await changed(other, { expires_at });
  expect(refusalOf(await change(other, { expires_at: null }, key))).toBe('403 own_limits');
});

test('no key lifts the limits of a key that holds more rights', async () => {
  const key = await api.mint(root.caller, { scopes: rights });
  await changed(key, { expires_at: inAnHour() });
  const lesser = await api.mint(root.caller, { scopes: ['apikeys.manage'] });
  expect(refusalOf(await change(key, { expires_at: null }, lesser))).toBe('403 scope_not_held');
  await changed(key, { expires_at: null });
});

test('a key that a limited key mints or rotates has the same limits', async () => {
  const key = await api.mint(root.caller, { scopes: rights });
  const bounds = { expires_at: inAnHour(), allowed_ips: ['203.0.113.0/24'] };
  await changed(key, bounds);
  expect(await read(await api.mint(key.caller))).toMatchObject(bounds);
  const rotated = await api.call(root.caller, 'POST', `/v1/api-keys/${key.id}/rotate`, { body: {} });
  expect(await read(rotated.json as { id: string })).toMatchObject(bounds);
  const free = await api.mint(root.caller, { scopes: ['sites.view'] });
  const byBounded = await api.call(key.caller, 'POST', `/v1/api-keys/${free.id}/rotate`, { body: {} });
  expect(await read(byBounded.json as { id: string })).toMatchObject(bounds);
});
