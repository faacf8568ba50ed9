import type { SiteView } from '@drydock/contracts/hosting/sites';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { refusalOf, withoutRequestId } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { until } from '@drydock/testing/wait';
import pg from 'pg';
import { uuidv7 } from 'uuidv7';
import { givenBackup, givenSite, startApi } from '../../test/hosting-api';

const owner = callerOf();
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(owner);
});
afterAll(() => api.close());

const wanted = (change: object = {}) => ({ name: 'Shop', primary_domain: `${uuidv7()}.example.com`, ...change });

describe('POST /v1/sites', () => {
  it('accepts a site, its workflow and its audit entry in one go', async () => {
    const answer = await api.call('POST', '/v1/sites', { body: wanted({ name: 'Bakery' }) });
    expect(answer.status).toBe(202);
    expect(answer.json).toMatchObject({
      name: 'Bakery',
      status: 'provisioning',
      url: '',
      platform: 'local',
      org_id: owner.orgId,
    });
    const { id } = answer.json as { id: string };
    expect(answer.headers['retry-after']).toBe('1');
    const workflow = await api.call('GET', String(answer.headers['location']));
    expect(workflow.json).toMatchObject({
      kind: 'create_site',
      status: 'queued',
      subject: { type: 'site', id },
      steps: [{ name: 'provision' }, { name: 'probe' }],
    });
    expect(await auditedOf(api, `/v1/sites/${id}`)).toEqual(['site.create']);
  });

  it('gives a domain once per mode, without an audit entry for the refusal', async () => {
    const body = wanted();
    const sandbox = { ...owner, mode: 'sandbox' as const };
    expect((await api.call('POST', '/v1/sites', { body })).status).toBe(202);
    const entries = await api.rows('SELECT 1 FROM audit_outbox');
    const again = await api.call('POST', '/v1/sites', {
      body: { ...body, primary_domain: body.primary_domain.toUpperCase() },
    });
    expect([again.status, again.json]).toMatchObject([422, { code: 'domain_in_use' }]);
    expect(await api.rows('SELECT 1 FROM audit_outbox')).toHaveLength(entries.length);
    expect((await api.call('POST', '/v1/sites', { body, caller: sandbox })).status).toBe(202);
  });

  it('gives a domain again once its site has failed', async () => {
    const body = wanted();
    const first = await api.call('POST', '/v1/sites', { body });
    await api.rows("UPDATE sites SET status = 'failed', holds_domain = false WHERE id = $1", [
      (first.json as { id: string }).id,
    ]);
    expect((await api.call('POST', '/v1/sites', { body })).status).toBe(202);
  });

  it.each(['ssh', 'vendor'])('refuses the platform %s while none is configured', async (platform) => {
    const answer = await api.call('POST', '/v1/sites', { body: wanted({ platform }) });
    expect([answer.status, answer.json]).toMatchObject([422, { code: 'platform_unavailable' }]);
  });

  it.each([
    ['an unknown field', wanted({ status: 'active' })],
    ['an organisation', wanted({ org_id: uuidv7() })],
    ['no domain', { name: 'x' }],
    ['a domain of one label', wanted({ primary_domain: 'localhost' })],
    ['a name that is an object', wanted({ name: { not: '' } })],
    ['no retention at all', wanted({ plan: { daily_backups: true, backup_retention_days: 0 } })],
  ])('refuses %s', async (_what, body) => {
    const answer = await api.call('POST', '/v1/sites', { body });
    expect([answer.status, answer.json]).toMatchObject([
      422,
      { code: expect.stringMatching(/^invalid_(request|json)$/) },
    ]);
  });

  it('refuses a NUL as malformed JSON', async () => {
    expect(refusalOf(await api.call('POST', '/v1/sites', { body: wanted({ name: 'a\u0000b' }) }))).toBe(
      '400 malformed_json',
    );
  });

  it('makes one site of several requests at once that have one Idempotency-Key', async () => {
    const body = wanted({ name: 'Once' });
    const answers = await Promise.all(
      [1, 2, 3].map(() => api.call('POST', '/v1/sites', { body, idempotencyKey: 'one-site' })),
    );
    expect(answers.map(({ status }) => status)).toEqual([202, 202, 202]);
    expect(new Set(answers.map(({ text }) => text)).size).toBe(1);
    expect(await api.rows("SELECT 1 FROM sites WHERE name = 'Once'")).toHaveLength(1);
  });
});

describe('whose site it is', () => {
  const strangers = [
    ['another organisation', callerOf()],
    ['the other mode', { ...owner, mode: 'sandbox' as const }],
  ] as const;
  const paths: Array<[method: string, rest: string, body: object | null]> = [
    ['GET', '', null],
    ['DELETE', '', null],
    ['GET', '/backups', null],
    ['POST', '/backups', {}],
    ['POST', '/backups/restore', { backup_id: uuidv7() }],
    ['POST', '/backups/restore/preflight', { backup_id: uuidv7() }],
    ['GET', '/workflows', null],
    ['GET', `/workflows/${uuidv7()}`, null],
    ['GET', `/workflows/${uuidv7()}/events`, null],
    ['POST', `/workflows/${uuidv7()}/retry`, null],
    ['POST', `/workflows/${uuidv7()}/abandon`, null],
  ];
  describe.each(strangers)('%s', (_who, caller) => {
    it.each(paths)('%s %s answers as if there were no such site', async (method, rest, body) => {
      const siteId = await givenSite(api, owner);
      const options = { caller, ...(body === null ? {} : { body }) };
      const foreign = await api.call(method, `/v1/sites/${siteId}${rest}`, options);
      const missing = await api.call(method, `/v1/sites/${uuidv7()}${rest}`, options);
      expect(refusalOf(foreign)).toBe('404 site_not_found');
      expect(withoutRequestId(foreign)).toEqual(withoutRequestId(missing));
      expect(await api.rows("SELECT 1 FROM sites WHERE id = $1 AND status = 'active'", [siteId])).toHaveLength(1);
      expect(await api.rows('SELECT 1 FROM workflow WHERE subject_id = $1', [siteId])).toHaveLength(0);
    });
  });

  it('takes an id in upper case for the same site and refuses other versions with the same 404', async () => {
    const siteId = await givenSite(api, owner);
    expect((await api.call('GET', `/v1/sites/${siteId.toUpperCase()}`)).json).toMatchObject({ id: siteId });
    expect((await api.call('GET', '/v1/sites/00000000-0000-4000-8000-000000000000')).json).toMatchObject({
      code: 'site_not_found',
    });
  });
});

it('lists the sites of its own organisation and mode, newest first, page by page', async () => {
  const caller = callerOf();
  await givenSite(api, callerOf());
  await givenSite(api, { ...caller, mode: 'sandbox' });
  const ids = [await givenSite(api, caller), await givenSite(api, caller), await givenSite(api, caller)].reverse();
  const first = (await api.call('GET', '/v1/sites?limit=2', { caller })).json as Listed;
  const second = (await api.call('GET', `/v1/sites?limit=2&cursor=${first.page.next_cursor}`, { caller }))
    .json as Listed;
  expect([...first.data, ...second.data].map(({ id }) => id)).toEqual(ids);
  expect(second.page).toEqual({ next_cursor: null, has_more: false, limit: 2 });
  const stolen = await api.call('GET', `/v1/sites?cursor=${first.page.next_cursor}`);
  expect(stolen.json).toMatchObject({ code: 'invalid_cursor' });
});

it('accepts a deletion once, and then nothing else until it is done', async () => {
  const siteId = await givenSite(api, owner);
  const deleted = await api.call('DELETE', `/v1/sites/${siteId}`);
  expect([deleted.status, deleted.json]).toMatchObject([202, { id: siteId, status: 'deleting' }]);
  const again = await api.call('DELETE', `/v1/sites/${siteId}`);
  const workflowId = workflowIdOf(deleted);
  expect([again.status, again.json]).toMatchObject([422, { code: 'operation_in_progress', workflow_id: workflowId }]);
});

interface Listed {
  data: Array<{ id: string }>;
  page: { next_cursor: string | null };
}

describe('PATCH /v1/sites/{siteId}', () => {
  const change = (id: string, body: object) => api.call('PATCH', `/v1/sites/${id}`, { body });

  it('changes the name and what the customer keeps with the site, also while work is done to it, and is noted', async () => {
    const { json } = await api.call('POST', '/v1/sites', {
      body: wanted({ metadata: { contract: 'C-1', team: 'web', empty: '' } }),
    });
    const { workflow_id: _creation, ...site } = json as SiteView & { workflow_id: string };
    expect(site.metadata).toEqual({ contract: 'C-1', team: 'web' });
    const changed = await change(site.id, { name: 'Bakery', metadata: { contract: 'C-2', team: null } });
    expect([changed.status, changed.json]).toEqual([200, { ...site, name: 'Bakery', metadata: { contract: 'C-2' } }]);
    expect((await change(site.id, {})).json).toEqual(changed.json);
    expect((await api.call('GET', `/v1/sites/${site.id}`)).json).toEqual(changed.json);
    expect(await auditedOf(api, `/v1/sites/${site.id}`)).toEqual(['site.create', 'site.update', 'site.update']);
  });

  it('is announced to the worker after its commit, so that its event is delivered at once', async () => {
    const id = await givenSite(api, owner);
    const listener = new pg.Client({ connectionString: api.postgres.url });
    await listener.connect();
    const heard: string[] = [];
    listener.on('notification', ({ payload }) => heard.push(payload ?? ''));
    await listener.query('LISTEN workflow_changed');
    try {
      await change(id, { name: 'Bakery' });
      await until(() => heard.length > 0);
    } finally {
      await listener.end();
    }
    expect(await auditedOf(api, `/v1/sites/${id}`)).toEqual(['site.update']);
  });

  it('refuses one name more than twenty, and leaves what was there', async () => {
    const id = await givenSite(api, owner);
    const twenty = Object.fromEntries(Array.from({ length: 20 }, (_, index) => [`k${index}`, 'v']));
    expect((await change(id, { metadata: twenty })).status).toBe(200);
    const refused = await change(id, { name: 'Other', metadata: { more: 'v' } });
    expect(refused.json).toMatchObject({ status: 422, code: 'invalid_request', errors: [{ pointer: '/metadata' }] });
    expect((await api.call('GET', `/v1/sites/${id}`)).json).toMatchObject({
      metadata: twenty,
      name: expect.not.stringMatching('Other'),
    });
  });
});

it('the preflight of a deletion tells what would be left to restore from, and gives the refusal of the deletion', async () => {
  const siteId = await givenSite(api, owner);
  const preflight = async (query = '') =>
    (await api.call('POST', `/v1/sites/${siteId}/deletion/preflight${query}`)).json;
  // No site agent runs, so the preflight gets no answer from one.
  expect(await preflight()).toMatchObject({
    would: expect.stringMatching(/It can come back until the record of its deletion is purged$/),
    refusal: null,
    findings: [{ code: 'host_unreachable' }],
  });
  const none = '?last_backup=none';
  expect(await preflight(none)).toMatchObject({
    would: expect.stringMatching(/It cannot come back$/),
    findings: [{ code: 'no_backup' }],
  });
  const backupId = await givenBackup(api, owner, siteId);
  const detail = expect.stringContaining(backupId);
  expect(await preflight(none)).toMatchObject({
    findings: [{ level: 'WARNING', code: 'no_last_backup', detail }],
    undo: false,
  });
  // Without an expiry the backup counts as the last backup of an abandoned deletion.
  await api.rows('UPDATE backups SET expires_at = NULL WHERE id = $1', [backupId]);
  expect(await preflight()).toMatchObject({
    would: expect.stringContaining('It can come back'),
    findings: [{ level: 'WARNING', code: 'no_last_backup', detail }],
  });
  const workflowId = workflowIdOf(await api.call('DELETE', `/v1/sites/${siteId}`));
  expect(await preflight()).toMatchObject({ refusal: { code: 'operation_in_progress', workflow_id: workflowId } });
});
