import type { Org } from '@drydock/contracts/keys/orgs';
import { permissions } from '@drydock/contracts/platform/permissions';
import type { PageMeta } from '@drydock/contracts/platform/values';
import { refusalOf, withoutRequestId } from '@drydock/service/testing/problem';
import { uuidv7 } from 'uuidv7';
import { type GoodKey, type KeysApi, startKeys } from '../../test/keys-api';
import { depthMax } from './org.rules';

let api: KeysApi;
let root: GoodKey;
beforeAll(async () => {
  api = await startKeys();
  root = await api.bootstrap();
});
afterAll(() => api.close());

const create = (body: unknown, caller = root.caller) => api.call(caller, 'POST', '/v1/orgs', { body });
const update = (id: string, body: unknown, caller = root.caller) =>
  api.call(caller, 'PATCH', `/v1/orgs/${id}`, { body });
const rights = ['apikeys.manage', 'orgs.view', 'orgs.manage', 'sites.view', 'databases.view'];

/** Creates an organisation below `above` with these rights, and a key with all of them. */
async function below(above: GoodKey, name: string): Promise<{ org: Org; key: GoodKey }> {
  const org = await api.createOrg(above.caller, { name, permissions: rights });
  return { org, key: await api.mint(above.caller, { org_id: org.id, scopes: rights }) };
}

test('a reseller loses and regains a right together with its whole subtree, at once', async () => {
  const reseller = await below(root, 'Reseller');
  const customer = await below(reseller.key, 'Customer');
  const scopesOf = async ({ token }: GoodKey) => (await api.callerOf(token)).scopes;
  const without = rights.filter((right) => right !== 'databases.view');
  expect((await update(reseller.org.id, { permissions: without })).status).toBe(200);
  expect(await scopesOf(reseller.key)).toEqual([...without].sort(byRegistry));
  expect(await scopesOf(customer.key)).toEqual([...without].sort(byRegistry));
  expect(
    refusalOf(
      await api.call(customer.key.caller, 'POST', '/v1/api-keys', { body: { name: 'x', scopes: ['databases.view'] } }),
    ),
  ).toBe('403 scope_not_held');
  await update(reseller.org.id, { permissions: rights });
  expect(await scopesOf(customer.key)).toContain('databases.view');
});

const order: readonly string[] = permissions;
const byRegistry = (left: string, right: string): number => order.indexOf(left) - order.indexOf(right);

test('an organisation may give up rights of its own, but only one above it can give it more', async () => {
  const reseller = await below(root, 'Greedy');
  expect(
    refusalOf(await update(reseller.org.id, { permissions: [...rights, 'platform.staff'] }, reseller.key.caller)),
  ).toBe('422 org_permission_not_held');
  const fewer = rights.slice(0, 3);
  expect((await update(reseller.org.id, { permissions: fewer }, reseller.key.caller)).json).toMatchObject({
    permissions: fewer,
  });
  expect(refusalOf(await update(reseller.org.id, { permissions: rights }, reseller.key.caller))).toBe(
    '422 org_permission_not_held',
  );
  expect((await update(reseller.org.id, { permissions: rights })).status).toBe(200);
});

test('a key takes from its organisation, and gives one below it, only what it holds itself', async () => {
  const reseller = await below(root, 'Kept');
  const weak = await api.mint(root.caller, { org_id: reseller.org.id, scopes: ['orgs.manage', 'sites.view'] });
  for (const permissions of [['orgs.manage', 'sites.view'], ['databases.view'], []])
    expect(refusalOf(await update(reseller.org.id, { permissions }, weak.caller))).toBe('403 scope_not_held');
  expect((await api.callerOf(reseller.key.token)).scopes).toEqual(reseller.key.caller.scopes);
  const customer = await api.createOrg(reseller.key.caller, { name: 'Below it', permissions: ['databases.view'] });
  const given = (permissions: string[]) => update(customer.id, { permissions }, weak.caller);
  expect(refusalOf(await given(['databases.view', 'apikeys.manage']))).toBe('403 scope_not_held');
  expect((await given(['databases.view', 'sites.view'])).status).toBe(200);
});

test('an organisation at the top loses no permission, since no key could give it back', async () => {
  const top = await api.bootstrap();
  const [held] = await api.rows<{ permissions: string[] }>('SELECT permissions FROM orgs WHERE id = $1', [
    top.caller.orgId,
  ]);
  const without = (held?.permissions ?? []).filter((permission) => permission !== 'orgs.manage');
  expect(refusalOf(await update(top.caller.orgId, { permissions: without }, top.caller))).toBe(
    '422 org_top_loses_permission',
  );
  expect((await update(top.caller.orgId, { permissions: held?.permissions }, top.caller)).status).toBe(200);
  expect((await api.callerOf(top.token)).scopes).toContain('orgs.manage');
});

test('an organisation is never allowed more than those above it, and the answer lists what is too much', async () => {
  const reseller = await below(root, 'Bound');
  const answer = await create({ name: 'x', permissions: ['sites.view', 'audit.view'] }, reseller.key.caller);
  expect(refusalOf(answer)).toBe('422 org_permission_not_held');
  expect(answer.json).toMatchObject({
    errors: [{ pointer: '/permissions/1', detail: expect.stringContaining('audit.view') }],
  });
  const customer = await below(reseller.key, 'Bound customer');
  await update(reseller.org.id, { permissions: ['apikeys.manage'] });
  expect(refusalOf(await update(customer.org.id, { permissions: ['sites.view'] }))).toBe('422 org_permission_not_held');
});

test('a change of the name changes nothing else, and an empty change changes nothing', async () => {
  const { org } = await below(root, 'Before');
  expect((await update(org.id, { name: 'After' })).json).toEqual({ ...org, name: 'After' });
  expect((await update(org.id, {})).json).toEqual({ ...org, name: 'After' });
});

test("an organisation that is not the caller's or below answers 404, and 403 as a parent", async () => {
  const [reseller, sibling, stranger] = [await below(root, 'One'), await below(root, 'Two'), await api.bootstrap()];
  const ids = [uuidv7(), 'not-an-id', root.caller.orgId, sibling.org.id, stranger.caller.orgId];
  const updates = await Promise.all(ids.map((id) => update(id, { name: 'taken' }, reseller.key.caller)));
  expect(updates.map(refusalOf)).toEqual(ids.map(() => '404 org_not_found'));
  expect(new Set(updates.map((answer) => JSON.stringify(withoutRequestId(answer)))).size).toBe(1);
  const parents = ids.filter((id) => id !== 'not-an-id');
  const creations = await Promise.all(
    parents.map((parent_id) => create({ name: 'x', parent_id, permissions: [] }, reseller.key.caller)),
  );
  expect(creations.map(refusalOf)).toEqual(parents.map(() => '403 org_out_of_scope'));
  expect(new Set(creations.map((answer) => JSON.stringify(withoutRequestId(answer)))).size).toBe(1);
  expect(await api.rows(`SELECT id FROM orgs WHERE name = 'taken'`)).toEqual([]);
});

test('the list is the subtree, newest first, in pages', async () => {
  const reseller = await below(root, 'Listed');
  const children = [await below(reseller.key, 'a'), await below(reseller.key, 'b'), await below(reseller.key, 'c')];
  const grandchild = await below(children[0]?.key ?? reseller.key, 'd');
  const expected = [grandchild.org, ...children.map(({ org }) => org).reverse(), reseller.org];
  const found: Org[] = [];
  for (let query = '?limit=2'; query !== ''; ) {
    const { data, page } = (await api.call(reseller.key.caller, 'GET', `/v1/orgs${query}`)).json as {
      data: Org[];
      page: PageMeta;
    };
    found.push(...data);
    query = page.next_cursor === null ? '' : `?limit=2&cursor=${page.next_cursor}`;
  }
  expect(found).toEqual(expected);
});

test('a sandbox key may neither see nor change the tree', async () => {
  const { caller } = await api.mint(root.caller, { sandbox: true, scopes: ['orgs.view', 'orgs.manage'] });
  expect(refusalOf(await api.call(caller, 'GET', '/v1/orgs'))).toBe('403 sandbox_key');
  expect(refusalOf(await create({ name: 'x', permissions: [] }, caller))).toBe('403 sandbox_key');
  expect(refusalOf(await update(root.caller.orgId, { name: 'x' }, caller))).toBe('403 sandbox_key');
});

test('organisations nest sixteen deep and no deeper', async () => {
  let parent_id = root.caller.orgId;
  for (let depth = 2; depth <= depthMax; depth += 1)
    ({ id: parent_id } = await api.createOrg(root.caller, { name: `deep ${depth}`, parent_id, permissions: [] }));
  const answer = await create({ name: 'too deep', parent_id, permissions: [] });
  expect(answer.json).toMatchObject({
    status: 422,
    code: 'invalid_request',
    errors: [{ pointer: '/parent_id', code: 'too_deep' }],
  });
});

test.each([
  [{ permissions: [] }],
  [{ name: 'x' }],
  [{ name: 'x', permissions: ['sites.fly'] }],
  [{ name: 'x', permissions: 'sites.view' }],
  [{ name: 'x', permissions: [], path: [] }],
  [{ name: 'x', permissions: [], parent_id: 'acme' }],
])('%j is refused', async (body) => {
  expect(refusalOf(await create(body))).toBe('422 invalid_request');
});

test('simultaneous changes of one organisation are all made, one after another', async () => {
  const { org } = await below(root, 'Busy');
  const answers = await Promise.all(
    Array.from({ length: 10 }, (_, number) => update(org.id, { name: `name ${number}`, permissions: rights })),
  );
  expect(answers.map(({ status }) => status)).toEqual(answers.map(() => 200));
});

test('/v1/me and /v1/permissions show what the calling key may do', async () => {
  const { key, org } = await below(root, 'Mine');
  const me = await api.call(key.caller, 'GET', '/v1/me');
  expect(me.json).toMatchObject({
    key: { id: key.id },
    org: { id: org.id, name: 'Mine' },
    scopes: key.caller.scopes,
    mode: 'live',
  });
  const { data } = (await api.call(key.caller, 'GET', '/v1/permissions')).json as {
    data: Array<{ key: string; held: boolean }>;
  };
  expect(data.map((permission) => permission.key)).toEqual(permissions);
  expect(data.filter(({ held }) => held).map((permission) => permission.key)).toEqual(key.caller.scopes);
  await api.rows('UPDATE api_keys SET revoked_at = now() WHERE id = $1', [key.id]);
  expect(refusalOf(await api.call(key.caller, 'GET', '/v1/me'))).toBe('401 unauthenticated');
});
