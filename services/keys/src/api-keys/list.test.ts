import type { ApiKey } from '@drydock/contracts/keys/api-keys';
import type { PageMeta } from '@drydock/contracts/platform/values';
import type { Caller } from '@drydock/service/access';
import { refusalOf, withoutRequestId } from '@drydock/service/testing/problem';
import { sampleOf } from '@drydock/testing/seeded-random';
import fc from 'fast-check';
import { uuidv7 } from 'uuidv7';
import { type GoodKey, type KeysApi, startKeys } from '../../test/keys-api';

let api: KeysApi;
/** The tree is grand ─ parent ─ { child, sibling }. `stranger` is outside of it. */
const orgs: Record<'grand' | 'parent' | 'child' | 'sibling' | 'stranger', { id: string; key: GoodKey }> = {} as never;
const manage = ['apikeys.manage', 'sites.view'];

beforeAll(async () => {
  api = await startKeys();
  const grand = await api.bootstrap();
  orgs.grand = { id: grand.caller.orgId, key: grand };
  const below = async (above: GoodKey, name: string) => {
    const { id } = await api.createOrg(above.caller, {
      name,
      parent_id: above.caller.orgId,
      permissions: [...manage, 'orgs.manage'],
    });
    return { id, key: await api.mint(above.caller, { name, org_id: id, scopes: [...manage, 'orgs.manage'] }) };
  };
  orgs.parent = await below(grand, 'parent');
  orgs.child = await below(orgs.parent.key, 'child');
  orgs.sibling = await below(orgs.parent.key, 'sibling');
  const stranger = await api.bootstrap();
  orgs.stranger = { id: stranger.caller.orgId, key: stranger };
});
afterAll(() => api.close());

const get = (caller: Caller, query = '') => api.call(caller, 'GET', `/v1/api-keys${query}`);

async function crawl(caller: Caller, query: Record<string, string> = {}): Promise<ApiKey[]> {
  const found: ApiKey[] = [];
  for (let cursor: string | null = ''; cursor !== null; ) {
    const search = new URLSearchParams({ ...query, ...(cursor === '' ? {} : { cursor }) });
    const answer = await get(caller, `?${search.toString()}`);
    if (answer.status !== 200) throw new Error(answer.text);
    const { data, page } = answer.json as { data: ApiKey[]; page: PageMeta };
    expect(page.has_more).toBe(page.next_cursor !== null);
    found.push(...data);
    cursor = page.next_cursor;
  }
  return found;
}

test('the list is the whole subtree, newest first, page by page, and as metadata only', async () => {
  const made: string[] = [];
  for (let number = 0; number < 7; number += 1) {
    const { id } = await api.mint(orgs.parent.key.caller, {
      org_id: number % 2 === 0 ? orgs.child.id : orgs.parent.id,
      name: `n${number}`,
    });
    made.unshift(id);
  }
  for (const limit of ['1', '3', '100', '100000']) {
    const found = await crawl(orgs.parent.key.caller, { limit });
    expect(found.map(({ id }) => id).slice(0, 7)).toEqual(made);
    expect(found.map(({ id }) => id)).toEqual([...found.map(({ id }) => id)].sort().reverse());
    expect(new Set(found.map(({ id }) => id)).size).toBe(found.length);
  }
  const { text } = await get(orgs.parent.key.caller);
  expect(text).not.toMatch(/token|secret|hash|pepper/);
});

test('each organisation sees its own keys and those below, never those above or beside it', async () => {
  const idsOf = async (caller: Caller) => new Set((await crawl(caller)).map(({ id }) => id));
  const child = await idsOf(orgs.child.key.caller);
  expect(child.has(orgs.child.key.id)).toBe(true);
  for (const other of [orgs.grand, orgs.parent, orgs.sibling, orgs.stranger])
    expect(child.has(other.key.id)).toBe(false);
  const grand = await idsOf(orgs.grand.key.caller);
  for (const other of [orgs.grand, orgs.parent, orgs.child, orgs.sibling]) expect(grand.has(other.key.id)).toBe(true);
  expect(grand.has(orgs.stranger.key.id)).toBe(false);
});

test('org_id lists the keys of that organisation alone; an unreachable one answers as a missing one', async () => {
  const { id } = await api.mint(orgs.grand.key.caller, { org_id: orgs.child.id });
  const ids = (await crawl(orgs.parent.key.caller, { org_id: orgs.child.id.toUpperCase(), limit: '2' })).map(
    (key) => key.id,
  );
  expect(ids).toContain(id);
  expect(ids).not.toContain(orgs.parent.key.id);
  const empty = await api.createOrg(orgs.grand.key.caller, { name: 'empty', permissions: [] });
  expect(await crawl(orgs.grand.key.caller, { org_id: empty.id })).toEqual([]);
  const answers = await Promise.all(
    [uuidv7(), orgs.parent.id, orgs.sibling.id, orgs.grand.id, orgs.stranger.id].map((orgId) =>
      get(orgs.child.key.caller, `?org_id=${orgId}`),
    ),
  );
  expect(answers.map(refusalOf)).toEqual(answers.map(() => '403 org_out_of_scope'));
  expect(new Set(answers.map((answer) => JSON.stringify(withoutRequestId(answer)))).size).toBe(1);
});

test('minting for a parent, a sibling or a stranger is refused as for a missing organisation', async () => {
  const answers = await Promise.all(
    [uuidv7(), orgs.parent.id, orgs.sibling.id, orgs.grand.id, orgs.stranger.id].map((org_id) =>
      api.call(orgs.child.key.caller, 'POST', '/v1/api-keys', { body: { name: 'x', org_id } }),
    ),
  );
  expect(answers.map(refusalOf)).toEqual(answers.map(() => '403 org_out_of_scope'));
  expect(new Set(answers.map((answer) => JSON.stringify(withoutRequestId(answer)))).size).toBe(1);
});

test('a foreign, revoked or missing key, and a live one for a sandbox caller, are one 404 to every call', async () => {
  const revoked = await api.mint(orgs.child.key.caller);
  await api.rows('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [revoked.id]);
  const sandbox = await api.mint(orgs.child.key.caller, { sandbox: true, scopes: ['apikeys.manage'] });
  const cases: Array<[Caller, string]> = [
    ...[
      uuidv7(),
      orgs.parent.key.id,
      orgs.sibling.key.id,
      orgs.stranger.key.id,
      revoked.id,
      'not-an-id',
      "' OR 1=1 --",
    ].map((id): [Caller, string] => [orgs.child.key.caller, id]),
    [sandbox.caller, orgs.child.key.id],
  ];
  for (const [method, suffix] of [
    ['GET', ''],
    ['DELETE', ''],
    ['POST', '/rotate'],
  ] as const) {
    const answers = await Promise.all(
      cases.map(([caller, id]) =>
        api.call(
          caller,
          method,
          `/v1/api-keys/${encodeURIComponent(id)}${suffix}`,
          method === 'POST' ? { body: {} } : {},
        ),
      ),
    );
    expect(answers.map(refusalOf)).toEqual(answers.map(() => '404 api_key_not_found'));
    expect(new Set(answers.map((answer) => JSON.stringify(withoutRequestId(answer)))).size).toBe(1);
  }
});

test('a sandbox caller sees only the sandbox keys of its subtree, and a live caller all keys', async () => {
  const sandbox = await api.mint(orgs.parent.key.caller, { sandbox: true, scopes: ['apikeys.manage'] });
  const below = await api.mint(orgs.parent.key.caller, { sandbox: true, org_id: orgs.child.id });
  for (const query of [{}, { org_id: orgs.parent.id }, { org_id: orgs.child.id }]) {
    expect((await crawl(sandbox.caller, query)).every((key) => key.sandbox)).toBe(true);
  }
  expect((await crawl(sandbox.caller)).map(({ id }) => id)).toEqual(expect.arrayContaining([sandbox.id, below.id]));
  expect(new Set((await crawl(orgs.parent.key.caller)).map((key) => key.sandbox))).toEqual(new Set([true, false]));
});

test.each([
  ['limit=0', 'invalid_limit'],
  ['limit=-1', 'invalid_limit'],
  ['limit=1.5', 'invalid_limit'],
  ['limit=1%3B', 'invalid_limit'],
  ['limit=', 'invalid_limit'],
  ['limit=1e9', 'invalid_limit'],
  ['limit=1&limit=2', 'invalid_request'],
  ['cursor=', 'invalid_cursor'],
  ['cursor=e30.e30', 'invalid_cursor'],
  [`cursor=${'A'.repeat(3_000)}`, 'invalid_cursor'],
  ['org_id=acme', 'invalid_request'],
  ['page=2', 'invalid_request'],
])('%.40s is refused', async (query, code) => {
  expect(refusalOf(await get(orgs.grand.key.caller, `?${query}`))).toBe(`422 ${code}`);
});

test('a cursor is refused with any bit flipped, by another key, for another filter and for another list', async () => {
  const { page } = (await get(orgs.grand.key.caller, '?limit=1')).json as { page: PageMeta };
  const cursor = page.next_cursor ?? '';
  const refused = async (caller: Caller, query: string, path = '/v1/api-keys') =>
    expect(refusalOf(await api.call(caller, 'GET', `${path}?${query}`))).toBe('422 invalid_cursor');
  expect((await get(orgs.grand.key.caller, `?cursor=${cursor}`)).status).toBe(200);
  await refused(orgs.parent.key.caller, `cursor=${cursor}`);
  await refused(orgs.grand.key.caller, `cursor=${cursor}&org_id=${orgs.grand.id}`);
  await refused(orgs.grand.key.caller, `cursor=${cursor}`, '/v1/orgs');
  await refused(orgs.grand.key.caller, `cursor=${cursor}`, '/v1/audit-log');
  const { seed, count } = sampleOf('changed cursors', { inCi: 60, inChaos: 2_000 });
  await fc.assert(
    fc.asyncProperty(fc.nat(cursor.length - 1), fc.integer({ min: 0, max: 6 }), async (at, bit) => {
      const bytes = Buffer.from(cursor);
      bytes[at] = (bytes[at] ?? 0) ^ (1 << bit);
      await refused(orgs.grand.key.caller, `cursor=${encodeURIComponent(bytes.toString())}`);
    }),
    { seed, numRuns: count },
  );
});
