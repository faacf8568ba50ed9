import type { MintedApiKey } from '@drydock/contracts/keys/api-keys';
import type { ServiceAnswer } from '@drydock/service/testing/call-service';
import { refusalOf } from '@drydock/service/testing/problem';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { type GoodKey, gateways, type KeysApi, startKeys } from '../../test/keys-api';
import { waitForGateways } from '../context/context';

let api: KeysApi;
let root: GoodKey;
beforeAll(async () => {
  api = await startKeys();
  root = await api.bootstrap();
});
afterAll(() => api.close());

const rotate = (id: string, body: object = {}, caller = root.caller) =>
  api.call(caller, 'POST', `/v1/api-keys/${id}/rotate`, { body });
const isGood = async (token: string): Promise<boolean> => (await api.verify(token)).valid;

/**
 * Sends a change that removes rights, and resolves while its answer waits for the gateways. `wasGone` tells whether the
 * change was committed before the wait. The answer waits until `open` is called.
 */
async function holdAtGateways(send: () => Promise<ServiceAnswer>, isGone: () => Promise<boolean>) {
  let open = (): void => undefined;
  const opened = new Promise<void>((resolve) => {
    open = resolve;
  });
  let wasGone: boolean | undefined;
  gateways.have = async () => {
    wasGone = await isGone();
    await opened;
  };
  let isAnswered = false;
  const answered = send().finally(() => {
    isAnswered = true;
  });
  await until(() => wasGone !== undefined);
  // These reads take longer than an answer that does not wait for the gateways.
  for (let look = 0; look < 10; look += 1) await isGone();
  return { wasGone, isAnswered, open, answered };
}
afterEach(() => {
  gateways.have = async () => undefined;
});

test('the wait for gateways is longer than a gateway trusts a verification', async () => {
  const startedMs = performance.now();
  await waitForGateways();
  expect(performance.now() - startedMs).toBeGreaterThan(1_050);
});

test('a revocation commits, waits until every gateway has heard of it, and only then answers', async () => {
  const { id, token } = await api.mint(root.caller);
  const held = await holdAtGateways(
    () => api.call(root.caller, 'DELETE', `/v1/api-keys/${id}`),
    async () => !(await isGood(token)),
  );
  expect([held.wasGone, held.isAnswered]).toEqual([true, false]);
  held.open();
  const answer = await held.answered;
  expect([answer.status, answer.text]).toEqual([204, '']);
  expect(await Promise.all(Array.from({ length: 5 }, () => isGood(token)))).toEqual(
    Array.from({ length: 5 }, () => false),
  );
  expect(refusalOf(await api.call(root.caller, 'GET', `/v1/api-keys/${id}`))).toBe('404 api_key_not_found');
  expect(refusalOf(await api.call(root.caller, 'DELETE', `/v1/api-keys/${id}`))).toBe('404 api_key_not_found');
  expect(refusalOf(await rotate(id))).toBe('404 api_key_not_found');
  expect((await api.call(root.caller, 'GET', '/v1/api-keys')).text).not.toContain(id);
});

test('without a grace time the old token is refused by every gateway once the rotation is answered', async () => {
  const old = await api.mint(root.caller);
  const held = await holdAtGateways(
    () => rotate(old.id, { grace_seconds: 0 }),
    async () => !(await isGood(old.token)),
  );
  expect([held.wasGone, held.isAnswered]).toEqual([true, false]);
  held.open();
  expect((await held.answered).status).toBe(201);
});

test('once a change of a key is answered, no gateway allows what the change took away', async () => {
  const key = await api.mint(root.caller, { scopes: ['sites.view'] });
  const isNarrowed = async (): Promise<boolean> => JSON.stringify(await api.verify(key.token)).includes('"scopes":[]');
  const held = await holdAtGateways(
    () => api.call(root.caller, 'PATCH', `/v1/api-keys/${key.id}`, { body: { scopes: [] } }),
    isNarrowed,
  );
  expect([held.wasGone, held.isAnswered]).toEqual([true, false]);
  held.open();
  expect((await held.answered).status).toBe(200);
});

test('once an organisation’s loss of a right is answered, no gateway allows that right', async () => {
  const rights = ['apikeys.manage', 'sites.view'];
  const child = await api.createOrg(root.caller, { name: 'Loses a right', permissions: rights });
  const key = await api.mint(root.caller, { org_id: child.id, scopes: rights });
  const held = await holdAtGateways(
    () => api.call(root.caller, 'PATCH', `/v1/orgs/${child.id}`, { body: { permissions: ['apikeys.manage'] } }),
    async () => !(await api.callerOf(key.token)).scopes.includes('sites.view'),
  );
  expect([held.wasGone, held.isAnswered]).toEqual([true, false]);
  held.open();
  expect((await held.answered).status).toBe(200);
});

test('two revocations at once: one is accepted', async () => {
  const { id } = await api.mint(root.caller);
  const answers = await Promise.all([1, 2, 3].map(() => api.call(root.caller, 'DELETE', `/v1/api-keys/${id}`)));
  expect(answers.map(({ status }) => String(status)).toSorted()).toEqual(['204', '404', '404']);
});

test('a key may revoke itself', async () => {
  const own = await api.mint(root.caller, { scopes: ['apikeys.manage'] });
  expect((await api.call(own.caller, 'DELETE', `/v1/api-keys/${own.id}`)).status).toBe(204);
  expect(await isGood(own.token)).toBe(false);
});

test('a rotation gives a new key of the same rights, and the old one lives for the grace time', async () => {
  const child = await api.createOrg(root.caller, { name: 'Below', permissions: ['apikeys.manage', 'sites.view'] });
  const old = await api.mint(root.caller, { name: 'app', org_id: child.id, scopes: ['sites.view'], sandbox: true });
  const answer = await rotate(old.id, { grace_seconds: 3_600 });
  const made = answer.json as MintedApiKey;
  expect(answer.status).toBe(201);
  expect(answer.headers['location']).toBe(`/v1/api-keys/${made.id}`);
  expect(made).toMatchObject({ name: 'app', scopes: ['sites.view'], sandbox: true });
  expect(await api.callerOf(made.token)).toEqual({ ...old.caller, keyId: made.id });
  expect(await isGood(old.token)).toBe(true);
  const [life] = await api.rows<{ fits: boolean }>(
    `SELECT valid_until BETWEEN now() + interval '50 minutes' AND now() + interval '1 hour' AS fits FROM api_keys WHERE id = $1`,
    [old.id],
  );
  expect(life).toEqual({ fits: true });
  await api.rows('UPDATE api_keys SET valid_until = now() WHERE id = $1', [old.id]);
  expect(await isGood(old.token)).toBe(false);
  expect(refusalOf(await api.call(root.caller, 'GET', `/v1/api-keys/${old.id}`))).toBe('404 api_key_not_found');
  expect((await api.call(root.caller, 'GET', `/v1/api-keys?org_id=${child.id}`)).text).not.toContain(old.id);
  expect(await isGood(made.token)).toBe(true);
});

test('without grace the old key is refused at once; a later rotation never prolongs a life', async () => {
  const [first, second] = [await api.mint(root.caller), await api.mint(root.caller)];
  expect((await rotate(first.id, { grace_seconds: 0 })).status).toBe(201);
  expect(await isGood(first.token)).toBe(false);
  await rotate(second.id, { grace_seconds: 60 });
  await rotate(second.id, { grace_seconds: 600_000 });
  const [row] = await api.rows<{ shortest: boolean }>(
    `SELECT valid_until < now() + interval '61 seconds' AS shortest FROM api_keys WHERE id = $1`,
    [second.id],
  );
  expect(row).toEqual({ shortest: true });
});

test.each([[-1], [1.5], ['60'], [604_801]])('a grace time of %j is refused', async (grace_seconds) => {
  const { id } = await api.mint(root.caller);
  expect(refusalOf(await rotate(id, { grace_seconds }))).toBe('422 invalid_request');
});

test('a rotation gives the caller no right that the caller does not hold', async () => {
  const strong = await api.mint(root.caller, { scopes: ['sites.view', 'platform.staff'] });
  const weak = await api.mint(root.caller, { scopes: ['apikeys.manage', 'sites.view'] });
  const answer = await rotate(strong.id, {}, weak.caller);
  expect(refusalOf(answer)).toBe('403 scope_not_held');
  expect(answer.json).toMatchObject({ errors: [{ detail: expect.stringContaining('platform.staff') }] });
  expect(await isGood(strong.token)).toBe(true);
});

test('a weak key can neither revoke a stronger key nor take its scopes, time or addresses', async () => {
  const strong = await api.mint(root.caller, { scopes: ['sites.view', 'databases.manage'] });
  const weak = await api.mint(root.caller, { scopes: ['apikeys.manage', 'sites.view'] });
  const revoked = await api.call(weak.caller, 'DELETE', `/v1/api-keys/${strong.id}`);
  expect(refusalOf(revoked)).toBe('403 scope_not_held');
  expect(revoked.json).toMatchObject({ errors: [{ detail: expect.stringContaining('databases.manage') }] });
  const soon = new Date(Date.now() + 60_000).toISOString();
  for (const body of [{ scopes: [] }, { expires_at: soon }, { allowed_ips: ['203.0.113.7'] }]) {
    const answer = await api.call(weak.caller, 'PATCH', `/v1/api-keys/${strong.id}`, { body });
    expect([body, refusalOf(answer)]).toEqual([body, '403 scope_not_held']);
  }
  expect((await api.callerOf(strong.token)).scopes).toEqual(['sites.view', 'databases.manage']);
});

test('a key is revoked by one that holds as much, by its creator, and by staff', async () => {
  const scopes = ['apikeys.manage', 'sites.view', 'databases.manage'];
  const creator = await api.mint(root.caller, { scopes });
  const equal = await api.mint(root.caller, { scopes });
  const staff = await api.mint(root.caller, { scopes: ['apikeys.manage', 'platform.staff'] });
  const made = await Promise.all([1, 2, 3].map(() => api.mint(creator.caller, { scopes })));
  await api.call(root.caller, 'PATCH', `/v1/api-keys/${creator.id}`, { body: { scopes: ['apikeys.manage'] } });
  const callers = [await api.callerOf(creator.token), equal.caller, staff.caller];
  const answers = await Promise.all(
    made.map(({ id }, at) => api.call(callers[at] ?? root.caller, 'DELETE', `/v1/api-keys/${id}`)),
  );
  expect(answers.map(({ status }) => status)).toEqual([204, 204, 204]);
});

test('a rotation does not bring back a right that the organisation has lost', async () => {
  const child = await api.createOrg(root.caller, {
    name: 'Shrunk',
    permissions: ['apikeys.manage', 'sites.view', 'databases.view'],
  });
  const old = await api.mint(root.caller, { org_id: child.id, scopes: ['sites.view', 'databases.view'] });
  await api.call(root.caller, 'PATCH', `/v1/orgs/${child.id}`, { body: { permissions: ['sites.view'] } });
  const { token } = (await rotate(old.id)).json as MintedApiKey;
  await api.call(root.caller, 'PATCH', `/v1/orgs/${child.id}`, {
    body: { permissions: ['sites.view', 'databases.view'] },
  });
  expect((await api.callerOf(token)).scopes).toEqual(['sites.view']);
  expect((await api.callerOf(old.token)).scopes).toEqual(['sites.view', 'databases.view']);
});

/**
 * Runs `meanwhile` while another session has revoked the key without a commit. That session commits as soon as a
 * statement waits for it.
 */
async function whileRevoking<T>(id: string, meanwhile: () => Promise<T>): Promise<T> {
  const session = new pg.Client({ connectionString: api.postgres.url });
  await session.connect();
  await session.query('BEGIN');
  await session.query('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [id]);
  const result = meanwhile();
  const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`;
  await until(async () => (await api.rows(waiting)).length > 0, { everyMs: 5 });
  await session.query('COMMIT');
  await session.end();
  return result;
}

test('a key that is being revoked cannot be rotated and mints no other key', async () => {
  const victim = await api.mint(root.caller, { name: 'victim', scopes: ['apikeys.manage'] });
  expect(refusalOf(await whileRevoking(victim.id, () => rotate(victim.id)))).toBe('404 api_key_not_found');
  const thief = await api.mint(root.caller, { name: 'thief', scopes: ['apikeys.manage'] });
  const mint = () => api.call(thief.caller, 'POST', '/v1/api-keys', { body: { name: 'a way around' } });
  expect(refusalOf(await whileRevoking(thief.id, mint))).toBe('401 unauthenticated');
  expect(await api.rows(`SELECT name FROM api_keys WHERE name IN ('victim', 'a way around')`)).toEqual([
    { name: 'victim' },
  ]);
});

test('a rotated key shows the end of its grace time, and a later expires_at does not move that end', async () => {
  const old = await api.mint(root.caller);
  const path = `/v1/api-keys/${old.id}`;
  const readEnd = async () => {
    const { json, headers } = await api.call(root.caller, 'GET', path);
    return { end: (json as { expires_at: string | null }).expires_at, etag: headers['etag'] };
  };
  const before = await readEnd();
  expect(before.end).toBeNull();
  expect((await rotate(old.id, { grace_seconds: 3_600 })).status).toBe(201);
  const [{ grace_end }] = (await api.rows(
    `SELECT to_char(valid_until AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"') AS grace_end
     FROM api_keys WHERE id = $1`,
    [old.id],
  )) as [{ grace_end: string }];
  const rotated = await readEnd();
  expect([rotated.end, rotated.etag === before.etag]).toEqual([grace_end, false]);
  const change = async (expires_at: string | null) => {
    const answer = await api.call(root.caller, 'PATCH', path, { body: { expires_at } });
    return [answer.status, (answer.json as { expires_at: string }).expires_at];
  };
  expect(await change('2099-01-01T00:00:00Z')).toEqual([200, grace_end]);
  expect(await change(null)).toEqual([200, grace_end]);
  const sooner = new Date(Date.parse(grace_end) - 60_000).toISOString();
  expect(await change(sooner)).toEqual([200, sooner]);
  expect((await readEnd()).end).toBe(sooner);
});
