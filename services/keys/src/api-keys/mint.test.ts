import { crcOf, tokenPattern } from '@drydock/contracts/platform/api-token';
import { refusalOf } from '@drydock/service/testing/problem';
import { uuidv7 } from 'uuidv7';
import { type GoodKey, type KeysApi, startKeys } from '../../test/keys-api';

let api: KeysApi;
let root: GoodKey;
beforeAll(async () => {
  api = await startKeys();
  root = await api.bootstrap();
});
afterAll(() => api.close());

const post = (caller = root.caller, body: unknown = {}, idempotencyKey?: string) =>
  api.call(caller, 'POST', '/v1/api-keys', { body, ...(idempotencyKey === undefined ? {} : { idempotencyKey }) });

test('a minted key shows its token once, and the token is well formed and valid', async () => {
  const { id, token, answer } = await api.mint(root.caller, {
    name: 'ci',
    scopes: ['sites.view', 'apikeys.manage', 'sites.view'],
  });
  expect(answer.headers['location']).toBe(`/v1/api-keys/${id}`);
  expect(answer.headers['cache-control']).toBe('no-store');
  expect(token).toMatch(tokenPattern);
  expect(token).toMatch(/^dd_live_/);
  expect(crcOf(token.slice(0, -6))).toBe(token.slice(-6));
  const prefix = token.split('_')[2];
  expect(answer.json).toMatchObject({
    id,
    name: 'ci',
    prefix,
    scopes: ['apikeys.manage', 'sites.view'],
    sandbox: false,
    revoked_at: null,
  });
  const { text } = await api.call(root.caller, 'GET', `/v1/api-keys/${id}`);
  expect(text).toContain(`"prefix":"${prefix}"`);
  expect(text).not.toMatch(/token|secret|hash/);
  expect(await api.verify(token)).toEqual({
    valid: true,
    key_id: id,
    org_id: root.caller.orgId,
    mode: 'live',
    scopes: ['apikeys.manage', 'sites.view'],
  });
});

test('a key is minted for an organisation below only where the right to manage keys is held there', async () => {
  const [without, withIt] = await Promise.all([
    api.createOrg(root.caller, { name: 'Without', permissions: ['sites.view'] }),
    api.createOrg(root.caller, { name: 'With', permissions: ['sites.view', 'apikeys.manage'] }),
  ]);
  const refused = await post(root.caller, { name: 'x', scopes: ['sites.view'], org_id: without.id });
  expect(refusalOf(refused)).toBe('403 org_out_of_scope');
  expect(refused.json).toMatchObject({ errors: [{ code: 'permission_missing', detail: 'apikeys.manage' }] });
  expect((await post(root.caller, { name: 'x', scopes: ['sites.view'], org_id: withIt.id })).status).toBe(201);
});

test('without scopes a key may do nothing', async () => {
  for (const body of [{}, { scopes: [] }]) {
    const { caller } = await api.mint(root.caller, body);
    expect(caller.scopes).toEqual([]);
    expect(refusalOf(await api.call(caller, 'GET', '/v1/api-keys'))).toBe('403 permission_denied');
  }
});

test('the permission is checked before anything else, and the refusal names it', async () => {
  const { caller } = await api.mint(root.caller, { scopes: ['sites.view'] });
  const answer = await post(caller, { nonsense: 1 });
  expect(refusalOf(answer)).toBe('403 permission_denied');
  expect(answer.json).toMatchObject({ errors: [{ code: 'permission_missing', detail: 'apikeys.manage' }] });
});

test.each([
  ['a scope that nobody knows', { scopes: ['sites.fly'] }, '422 unknown_scope'],
  ['a wildcard', { scopes: ['*'] }, '422 unknown_scope'],
  ['a prefix of a scope', { scopes: ['sites'] }, '422 unknown_scope'],
  ['a scope with something behind it', { scopes: ['sites.view.all'] }, '422 unknown_scope'],
  ['a scope in capitals', { scopes: ['Sites.View'] }, '422 unknown_scope'],
  ['a scope with a space', { scopes: ['sites.view '] }, '422 unknown_scope'],
  ['what every object has', { scopes: ['toString', '__proto__'] }, '422 unknown_scope'],
  ['ten thousand scopes', { scopes: Array.from({ length: 10_000 }, () => 'sites.view') }, '422 body_too_large'],
  ['a thousand scopes', { scopes: Array.from({ length: 1_000 }, () => 'sites.view') }, '422 invalid_request'],
  ['scopes that are no list', { scopes: 'sites.view' }, '422 invalid_request'],
  ['scopes that are no strings', { scopes: [{ not: '' }] }, '422 invalid_request'],
  ['no name', { name: undefined }, '422 invalid_request'],
  ['an empty name', { name: '' }, '422 invalid_request'],
  ['a NUL in the name', { name: 'a\u0000b' }, '422 invalid_json'],
  ['half a surrogate pair', { name: 'a\ud800' }, '422 invalid_json'],
  ['a field that there is not', { expires_at: '2030-01-01T00:00:00Z' }, '422 invalid_request'],
  ['a sandbox that is no boolean', { sandbox: 'true' }, '422 invalid_request'],
  ['an organisation that is no id', { org_id: 'acme' }, '422 invalid_request'],
  ['an unknown organisation', { org_id: uuidv7() }, '403 org_out_of_scope'],
  // Unknown scopes are refused first, then an unknown organisation, then scopes that the caller lacks.
  ['an unknown scope in an unknown organisation', { org_id: uuidv7(), scopes: ['sites.fly'] }, '422 unknown_scope'],
])('%s is refused, and no key is made', async (_what, body, refusal) => {
  const [before] = await api.rows<{ count: string }>('SELECT count(*) FROM api_keys');
  expect(refusalOf(await post(root.caller, { name: 'x', ...body }))).toBe(refusal);
  const [after] = await api.rows<{ count: string }>('SELECT count(*) FROM api_keys');
  expect(after).toEqual(before);
});

test('scopes that the creator does not hold are refused and listed', async () => {
  const { caller } = await api.mint(root.caller, { scopes: ['apikeys.manage', 'sites.view'] });
  const answer = await post(caller, { name: 'x', scopes: ['sites.view', 'platform.staff', 'databases.view'] });
  expect(refusalOf(answer)).toBe('403 scope_not_held');
  expect(answer.json).toMatchObject({
    errors: [
      { pointer: '/scopes/1', code: 'scope_not_held', detail: expect.stringContaining('platform.staff') },
      { pointer: '/scopes/2', code: 'scope_not_held', detail: expect.stringContaining('databases.view') },
    ],
  });
});

test('the minting transaction reads the calling key itself and does not rely on the gateway’s scopes', async () => {
  const weak = await api.mint(root.caller, { scopes: ['apikeys.manage'] });
  const stale = { ...weak.caller, scopes: ['apikeys.manage', 'platform.staff'] };
  expect(refusalOf(await post(stale, { name: 'x', scopes: ['platform.staff'] }))).toBe('403 scope_not_held');
  await api.rows('UPDATE api_keys SET scopes = $2 WHERE id = $1', [weak.id, ['sites.view']]);
  expect(refusalOf(await post(weak.caller, { name: 'x' }))).toBe('403 permission_denied');
  await api.rows('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [weak.id]);
  expect(refusalOf(await post(weak.caller, { name: 'x' }))).toBe('401 unauthenticated');
});

test('a sandbox key mints sandbox keys only; a live key mints both', async () => {
  const sandbox = await api.mint(root.caller, { sandbox: true, scopes: ['apikeys.manage'] });
  expect(sandbox.token).toMatch(/^dd_test_/);
  expect(sandbox.caller.mode).toBe('sandbox');
  expect(refusalOf(await post(sandbox.caller, { name: 'x' }))).toBe('403 sandbox_key');
  expect(refusalOf(await post(sandbox.caller, { name: 'x', sandbox: false, org_id: uuidv7() }))).toBe(
    '403 sandbox_key',
  );
  expect((await api.mint(sandbox.caller, { sandbox: true })).caller.mode).toBe('sandbox');
});

test('a key for an organisation below gets no permission that the organisation lacks', async () => {
  const child = await api.createOrg(root.caller, { name: 'Child', permissions: ['apikeys.manage', 'sites.view'] });
  const made = await api.mint(root.caller, { org_id: child.id.toUpperCase(), scopes: ['sites.view'] });
  expect(made.caller).toMatchObject({ orgId: child.id, scopes: ['sites.view'] });
  const answer = await post(root.caller, { name: 'x', org_id: child.id, scopes: ['databases.view'] });
  expect(refusalOf(answer)).toBe('403 scope_not_held');
});
