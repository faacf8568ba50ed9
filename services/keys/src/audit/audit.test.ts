import type { AuditEntry } from '@drydock/contracts/keys/events';
import type { PageMeta } from '@drydock/contracts/platform/values';
import type { Caller } from '@drydock/service/access';
import { refusalOf } from '@drydock/service/testing/problem';
import { uuidv7 } from 'uuidv7';
import { type GoodKey, type KeysApi, startKeys } from '../../test/keys-api';
import { openDatabase } from '../context/database.store';
import { takeDeliveries } from './audit-log';

let api: KeysApi;
let root: GoodKey;
beforeAll(async () => {
  api = await startKeys();
});
beforeEach(async () => {
  root = await api.bootstrap();
});
afterAll(() => api.close());

const log = async (caller: Caller): Promise<AuditEntry[]> => {
  const answer = await api.call(caller, 'GET', '/v1/audit-log?limit=100');
  return (answer.json as { data: AuditEntry[] }).data;
};
const entryOf = (orgId: string, more: object = {}) => ({
  id: uuidv7(),
  org_id: orgId,
  actor_key_id: uuidv7(),
  action: 'backup.restore',
  target: '/v1/sites/x',
  workflow_id: uuidv7(),
  at: '2026-01-02T03:04:05.678Z',
  ...more,
});
const deliver = (entries: unknown[], service = 'hosting', signed = { issuer: 'hosting', secret: api.secrets.audit }) =>
  api.internal('/internal/audit', { service, entries }, signed);

test('each accepted change makes one entry, and a refused change none', async () => {
  const child = await api.createOrg(root.caller, { name: 'Child', permissions: ['apikeys.manage', 'sites.view'] });
  await api.call(root.caller, 'PATCH', `/v1/orgs/${child.id}`, { body: { name: 'Renamed' } });
  const { id } = await api.mint(root.caller, { scopes: ['sites.view'] }, { idempotencyKey: 'once' });
  await api.mint(root.caller, { scopes: ['sites.view'] }, { idempotencyKey: 'once' });
  const rotated = await api.call(root.caller, 'POST', `/v1/api-keys/${id}/rotate`, { body: {} });
  await api.call(root.caller, 'DELETE', `/v1/api-keys/${id}`);
  for (const body of [{}, { name: 'x', scopes: ['no'] }, { name: 'x', org_id: uuidv7() }]) {
    expect((await api.call(root.caller, 'POST', '/v1/api-keys', { body })).status).toBeGreaterThan(400);
  }
  const entries = await log(root.caller);
  expect(entries.map(({ action, target, actor_key_id }) => [action, target, actor_key_id])).toEqual([
    ['api_key.revoke', `/v1/api-keys/${id}`, root.id],
    ['api_key.rotate', `/v1/api-keys/${id}`, root.id],
    ['api_key.create', `/v1/api-keys/${id}`, root.id],
    ['org.create', `/v1/orgs/${child.id}`, root.id],
    ['api_key.create', `/v1/api-keys/${root.id}`, null],
    ['org.create', `/v1/orgs/${root.caller.orgId}`, null],
  ]);
  expect(rotated.status).toBe(201);
  // Changes in the child organisation are in its own log.
  expect(await api.rows('SELECT action, actor_key_id FROM audit_log WHERE org_id = $1', [child.id])).toEqual([
    { action: 'org.update', actor_key_id: root.id },
  ]);
});

test('an entry and its change are one transaction', async () => {
  await api.rows('ALTER TABLE audit_log RENAME TO audit_log_away');
  const answers = [
    await api.call(root.caller, 'POST', '/v1/api-keys', { body: { name: 'unlogged' } }),
    await api.call(root.caller, 'POST', '/v1/orgs', { body: { name: 'unlogged', permissions: [] } }),
    await api.call(root.caller, 'DELETE', `/v1/api-keys/${root.id}`),
    await api.call(root.caller, 'PATCH', `/v1/orgs/${root.caller.orgId}`, { body: { name: 'unlogged' } }),
    await api.call(root.caller, 'POST', `/v1/api-keys/${root.id}/rotate`, { body: {} }),
  ];
  await api.rows('ALTER TABLE audit_log_away RENAME TO audit_log');
  expect(answers.map(refusalOf)).toEqual(answers.map(() => '500 internal_error'));
  expect(
    await api.rows(
      `SELECT name FROM api_keys WHERE name = 'unlogged' UNION ALL SELECT name FROM orgs WHERE name = 'unlogged'`,
    ),
  ).toEqual([]);
  expect((await api.verify(root.token)).valid).toBe(true);
  expect(await api.rows('SELECT valid_until FROM api_keys WHERE org_id = $1', [root.caller.orgId])).toEqual([
    { valid_until: null },
  ]);
});

test("a repeated delivery changes nothing, and the log shows only the caller's organisation and mode", async () => {
  const { orgId } = root.caller;
  const [live, sandbox, foreign] = [entryOf(orgId), entryOf(orgId), entryOf(uuidv7())];
  const entries = [
    { ...live, mode: 'live' },
    { ...sandbox, mode: 'sandbox' },
    { ...foreign, mode: 'live' },
  ];
  expect((await deliver(entries)).status).toBe(204);
  expect((await deliver(entries.map((entry) => ({ ...entry, action: 'changed.later' })))).status).toBe(204);
  expect((await log(root.caller)).slice(0, 1)).toEqual([live]);
  const { caller } = await api.mint(root.caller, { sandbox: true, scopes: ['audit.view'] });
  expect(await log(caller)).toEqual([sandbox]);
  expect((await log(root.caller)).map(({ id }) => id)).not.toContain(foreign.id);
});

test('a service writes only its own entries, and only with its own secret', async () => {
  const entry = { ...entryOf(root.caller.orgId), mode: 'live' };
  const { audit, token } = api.secrets;
  const answers = [
    await deliver([entry], 'keys'),
    await deliver([entry], 'compute'),
    await deliver([entry], 'compute', { issuer: 'compute', secret: audit }),
    await deliver([entry], 'hosting', { issuer: 'gateway', secret: token }),
    await deliver([entry], 'hosting', { issuer: 'hosting', secret: token }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([422, 422, 401, 401, 401]);
  expect(await api.rows('SELECT FROM audit_log WHERE id = $1', [entry.id])).toEqual([]);
});

test.each([
  ['no entries', {}],
  ['an entry with a field too many', { entries: [{ ...entryOf(uuidv7()), mode: 'live', service: 'keys' }] }],
  ['an entry without a mode', { entries: [entryOf(uuidv7())] }],
  ['an id that is none', { entries: [{ ...entryOf('x'), mode: 'live' }] }],
])('a delivery with %s is refused', async (_what, body) => {
  const answer = await api.internal(
    '/internal/audit',
    { service: 'hosting', ...body },
    { issuer: 'hosting', secret: api.secrets.audit },
  );
  expect(answer.status).toBe(422);
});

test('the log pages, newest first', async () => {
  const entries = Array.from({ length: 5 }, () => ({ ...entryOf(root.caller.orgId), mode: 'live' }));
  await deliver(entries);
  const found: string[] = [];
  for (let query = '?limit=2'; query !== ''; ) {
    const { data, page } = (await api.call(root.caller, 'GET', `/v1/audit-log${query}`)).json as {
      data: AuditEntry[];
      page: PageMeta;
    };
    found.push(...data.map(({ id }) => id));
    query = page.next_cursor === null ? '' : `?limit=2&cursor=${page.next_cursor}`;
  }
  expect(found.slice(0, 5)).toEqual(entries.map(({ id }) => id).reverse());
  expect(found).toHaveLength(7);
  expect(refusalOf(await api.call({ ...root.caller, scopes: [] }, 'GET', '/v1/audit-log'))).toBe(
    '403 permission_denied',
  );
});

test('only an organisation and those above it read its log, alone or with all below in one list', async () => {
  const child = await api.createOrg(root.caller, {
    name: 'Child',
    permissions: ['audit.view', 'orgs.manage', 'apikeys.manage'],
  });
  const { caller: childCaller } = await api.mint(root.caller, {
    org_id: child.id,
    scopes: ['audit.view', 'orgs.manage'],
  });
  const grandchild = await api.createOrg(childCaller, { name: 'Grandchild', permissions: ['audit.view'] });
  const { orgId } = root.caller;
  const stranger = await api.bootstrap({ newKey: true });
  const [own, below, deep, foreign] = [
    entryOf(orgId),
    entryOf(child.id),
    entryOf(grandchild.id),
    entryOf(stranger.caller.orgId),
  ];
  await deliver([own, below, deep, foreign].map((entry) => ({ ...entry, mode: 'live' })));
  await deliver([{ ...entryOf(child.id), mode: 'sandbox' }]);
  const read = (caller: Caller, query: string) => api.call(caller, 'GET', `/v1/audit-log?target=/v1/sites/x${query}`);
  const idsOf = async (caller: Caller, query: string): Promise<string[]> => {
    const { data } = (await read(caller, query)).json as { data: AuditEntry[] };
    return data.map(({ id }) => id);
  };
  expect(await idsOf(root.caller, '')).toEqual([own.id]);
  expect(await idsOf(root.caller, '&children=true')).toEqual([deep.id, below.id, own.id]);
  expect(await idsOf(root.caller, `&org_id=${child.id}`)).toEqual([below.id]);
  expect(await idsOf(root.caller, `&org_id=${child.id}&children=true`)).toEqual([deep.id, below.id]);
  expect(await idsOf(childCaller, '&children=true')).toEqual([deep.id, below.id]);
  const { data, page } = (await read(root.caller, '&children=true&limit=2')).json as {
    data: AuditEntry[];
    page: PageMeta;
  };
  expect(data.map(({ id }) => id)).toEqual([deep.id, below.id]);
  expect(await idsOf(root.caller, `&children=true&limit=2&cursor=${page.next_cursor}`)).toEqual([own.id]);
  for (const other of [orgId, stranger.caller.orgId, uuidv7()])
    expect(refusalOf(await read(childCaller, `&org_id=${other}`))).toBe('403 org_out_of_scope');
  const { caller: sandbox } = await api.mint(root.caller, { sandbox: true, scopes: ['audit.view'] });
  for (const query of ['&children=true', `&org_id=${child.id}`])
    expect(refusalOf(await read(sandbox, query))).toBe('403 sandbox_key');
});

test('entries that become events wake the sequencer once they are stored; entries of workflows do not', async () => {
  const database = openDatabase(api.postgres.url, { max: 1, applicationName: 'test' });
  let arrivals = 0;
  const [route] = takeDeliveries(database, { hosting: api.secrets.audit }, () => {
    arrivals += 1;
  });
  const take = async (entry: { id: string }) => {
    const body = { service: 'hosting', entries: [{ ...entry, mode: 'live' }] };
    await route?.handle({ body, issuer: 'hosting', requestId: uuidv7(), now: new Date() });
    const stored = await api.rows('SELECT id FROM events WHERE id = $1', [entry.id]);
    return [arrivals, stored.length];
  };
  const { orgId } = root.caller;
  expect(await take(entryOf(orgId))).toEqual([0, 0]);
  expect(await take(entryOf(orgId, { action: 'site.update', workflow_id: null }))).toEqual([1, 1]);
  await database.close();
});
