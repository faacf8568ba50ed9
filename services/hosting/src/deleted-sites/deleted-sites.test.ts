import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { DeletedSiteView } from '@drydock/contracts/hosting/deleted-sites';
import type { Caller } from '@drydock/service/access';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { refusalOf, withoutRequestId } from '@drydock/service/testing/problem';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { type GivenDeletion, givenDeletedSite } from '../../test/deleted-site';
import { givenSite, startApi } from '../../test/hosting-api';

const staff = callerOf();
const owner: Caller = { ...staff, keyId: uuidv7(), scopes: staff.scopes.filter((scope) => scope !== 'platform.staff') };
const backupsDir = mkdtempSync(path.join(tmpdir(), 'drydock-deleted-'));
/** No test connects to this host, because no worker runs. */
const liveHost = {
  host: '127.0.0.1',
  user: 'sites',
  private_key_file: '/nonexistent',
  host_key_fingerprint: `SHA256:${'A'.repeat(43)}`,
  sites_dir: '/srv/sites',
  database_admin_url: 'postgresql://admin:secret@127.0.0.1/postgres',
  public_url_template: 'https://{site_id}.example.com',
};
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(owner, { BACKUPS_DIR: backupsDir, SSH_SITE_HOST: JSON.stringify(liveHost) });
});
afterAll(async () => {
  await api.close();
  rmSync(backupsDir, { recursive: true, force: true });
});

const given = (change: GivenDeletion = {}, caller = owner) => givenDeletedSite(api, backupsDir, caller, change);
const read = async (id: string, options: object = {}) =>
  (await api.call('GET', `/v1/sites/deleted/${id}`, options)).json as DeletedSiteView;
const restore = (id: string, options: object = {}) => api.call('POST', `/v1/sites/deleted/${id}/restore`, options);
const preflight = (id: string, options: object = {}) =>
  api.call('POST', `/v1/sites/deleted/${id}/restore/preflight`, options);
const holdDomain = async (domain: string) => {
  const siteId = await givenSite(api, callerOf());
  await api.rows('UPDATE sites SET primary_domain = $1 WHERE id = $2', [domain, siteId]);
};

describe('GET /v1/sites/deleted', () => {
  it('shows that a site can be restored, and until when', async () => {
    const { id, siteId, domain } = await given({ daysAgo: 2 });
    const view = await read(id);
    expect(view).toEqual({
      id,
      site_id: siteId,
      org_id: owner.orgId,
      primary_domain: domain,
      reason: 'customer',
      deleted_at: expect.any(String),
      deleted_by: owner.keyId,
      purge_due_at: expect.any(String),
      purged_at: null,
      restored_at: null,
      restorable: true,
      reason_code: '',
    });
    expect(Date.parse(view.purge_due_at ?? '') - Date.parse(view.deleted_at)).toBe(30 * 86_400_000);
  });

  it('lists the records of its own organisation and mode, newest first, each as it is by itself', async () => {
    const caller = callerOf();
    await given({}, callerOf());
    await given({}, { ...caller, mode: 'sandbox' });
    const ids: string[] = [];
    for (const change of [{}, { hasObject: false }, { purged: true }]) ids.unshift((await given(change, caller)).id);
    const first = (await api.call('GET', '/v1/sites/deleted?limit=2', { caller })).json as Listed;
    const rest = (await api.call('GET', `/v1/sites/deleted?limit=2&cursor=${first.page.next_cursor}`, { caller }))
      .json as Listed;
    const listed = [...first.data, ...rest.data];
    expect(listed.map(({ id }) => id)).toEqual(ids);
    expect(listed.map(({ reason_code: code }) => code)).toEqual(['purged', 'no_backup', '']);
    for (const view of listed) expect(await read(view.id, { caller })).toEqual(view);
    expect((await api.call('GET', `/v1/sites/deleted?cursor=${first.page.next_cursor}`)).json).toMatchObject({
      code: 'invalid_cursor',
    });
  });
});

const reasons: Array<[reason: string, change: GivenDeletion]> = [
  ['already_restored', { restored: true, reason: 'abuse', hasObject: false }],
  ['purged', { purged: true, reason: 'abuse', hasBackup: false }],
  ['purged', { daysAgo: 31, reason: 'abuse' }],
  ['abuse_hold', { reason: 'abuse', hasObject: false }],
  ['no_backup', { hasBackup: false }],
  ['no_backup', { hasObject: false }],
];

describe('POST /v1/sites/deleted/{deletedSiteId}/restore', () => {
  it.each(reasons)(
    'refuses with %s, as the record and the preflight say, and changes nothing',
    async (reason, change) => {
      const { id, siteId, domain } = await given(change);
      await holdDomain(domain);
      expect(await read(id)).toMatchObject({ restorable: false, reason_code: reason });
      const answer = await restore(id);
      expect([answer.status, answer.json]).toMatchObject([422, { code: reason, reason_code: reason }]);
      expect((await preflight(id)).json).toMatchObject({ refusal: { code: reason, reason_code: reason } });
      expect(await api.rows('SELECT 1 FROM sites WHERE id = $1', [siteId])).toHaveLength(0);
      expect(await api.rows('SELECT 1 FROM workflow WHERE subject_id = $1', [id])).toHaveLength(0);
      expect(await auditedOf(api, `/v1/sites/deleted/${id}`)).toEqual([]);
    },
  );

  it('refuses while another site has the domain, and no longer', async () => {
    const { id, domain } = await given();
    await holdDomain(domain);
    expect(await read(id)).toMatchObject({ restorable: false, reason_code: 'domain_in_use' });
    expect((await restore(id)).json).toMatchObject({ code: 'domain_in_use', reason_code: 'domain_in_use' });
    await api.rows('DELETE FROM sites WHERE primary_domain = $1', [domain]);
    expect((await restore(id)).status).toBe(202);
  });

  it('lets staff bring back what was deleted for abuse', async () => {
    const { id } = await given({ reason: 'abuse' });
    expect(await read(id, { caller: staff })).toMatchObject({ restorable: true, reason_code: '' });
    expect((await restore(id)).json).toMatchObject({ code: 'abuse_hold' });
    expect((await restore(id, { caller: staff })).status).toBe(202);
  });

  it('reserves the domain, marks the record, and starts the rebuild, in one go', async () => {
    const { id, siteId, domain } = await given();
    const answer = await restore(id);
    expect([answer.status, answer.headers['retry-after'], answer.json]).toMatchObject([
      202,
      '1',
      { id, restored_at: expect.any(String), restorable: false, reason_code: 'already_restored' },
    ]);
    const site = (await api.call('GET', `/v1/sites/${siteId}`)).json;
    expect(site).toMatchObject({ id: siteId, status: 'suspended', primary_domain: domain, name: 'Shop' });
    const workflow = await api.call('GET', String(answer.headers['location']));
    expect(workflow.json).toMatchObject({
      kind: 'restore_deleted_site',
      status: 'queued',
      subject: { type: 'deleted_site', id },
    });
    expect(((await api.call('GET', `/v1/sites/deleted/${id}/workflows`)).json as Listed).data).toHaveLength(1);
    expect(await auditedOf(api, `/v1/sites/deleted/${id}`)).toEqual(['deleted_site.restore']);
    const told = await api.rows('SELECT type FROM workflow_event WHERE resource = $1', [`/v1/sites/deleted/${id}`]);
    expect(told).toEqual([{ type: 'workflow.accepted' }]);
    const taken = await api.call('POST', '/v1/sites', { body: { name: 'x', primary_domain: domain } });
    expect(taken.json).toMatchObject({ code: 'domain_in_use' });
    // A site accepts no work while it is being restored.
    const backup = await api.call('POST', `/v1/sites/${siteId}/backups`, { body: {} });
    expect(backup.json).toMatchObject({ code: 'operation_in_progress', workflow_id: workflowIdOf(answer) });
    expect((await api.call('GET', `/v1/sites/${siteId}/backups`)).json).toMatchObject({
      in_progress: true,
      can_backup: false,
    });
  });

  it.each([
    ['mysql', "'mysql'"],
    ['postgres', 'NULL'],
  ])('brings a site back with the database %s, whose record says %s', async (database, recorded) => {
    const { id, siteId } = await given();
    await api.rows(`UPDATE deleted_sites SET database = ${recorded} WHERE id = $1`, [id]);
    expect((await restore(id)).status).toBe(202);
    expect((await api.call('GET', `/v1/sites/${siteId}`)).json).toMatchObject({ database });
  });

  it.each([
    ['is active', "status = 'active'"],
    ['waits to be checked', 'serve_check_at = now()'],
  ])(
    'answers already_restored as soon as the site %s, although its restore has not ended, and not before',
    async (_state, change) => {
      const { id, siteId } = await given();
      const workflowId = workflowIdOf(await restore(id));
      for (const told of [await restore(id), { json: Reflect.get(Object((await preflight(id)).json), 'refusal') }])
        expect(told.json).toMatchObject({ code: 'operation_in_progress', workflow_id: workflowId });
      await api.rows(`UPDATE sites SET ${change} WHERE id = $1`, [siteId]);
      for (const told of [await restore(id), { json: Reflect.get(Object((await preflight(id)).json), 'refusal') }])
        expect(told.json).toMatchObject({ code: 'already_restored', reason_code: 'already_restored' });
    },
  );

  it('refuses while the platform is not offered in this mode, as its preflight tells, and changes nothing', async () => {
    const sandbox = { ...owner, mode: 'sandbox' as const };
    for (const caller of [owner, sandbox]) {
      const { id } = await given({}, caller);
      await api.rows("UPDATE deleted_sites SET platform = 'ssh' WHERE id = $1", [id]);
      const isOffered = caller.mode === 'live';
      const refusal = isOffered ? null : { code: 'platform_unavailable' };
      expect((await preflight(id, { caller })).json).toMatchObject({ refusal });
      expect((await restore(id, { caller })).status).toBe(isOffered ? 202 : 422);
      expect(await read(id, { caller })).toMatchObject({ restored_at: isOffered ? expect.any(String) : null });
    }
  });

  it('of five restores of one record at once exactly one wins', async () => {
    const { id, siteId } = await given();
    const answers = await Promise.all(Array.from({ length: 5 }, () => restore(id)));
    expect(answers.filter(({ status }) => status === 202)).toHaveLength(1);
    for (const { status, json } of answers.filter((answer) => answer.status !== 202))
      expect([status, json]).toMatchObject([422, { code: 'operation_in_progress', workflow_id: expect.any(String) }]);
    expect((await preflight(id)).json).toMatchObject({ refusal: { code: 'operation_in_progress' }, space: null });
    expect(await api.rows('SELECT 1 FROM sites WHERE id = $1', [siteId])).toHaveLength(1);
    expect(await api.rows('SELECT 1 FROM workflow WHERE subject_id = $1', [id])).toHaveLength(1);
  });

  it('of restores and new sites that race for a domain one gets it (H17)', async () => {
    for (let round = 0; round < 5; round += 1) {
      const domain = `race${uuidv7().replaceAll('-', '')}.example.com`;
      const records = [await given({ domain }), await given({ domain })];
      const answers = await Promise.all([
        ...records.map(({ id }) => restore(id)),
        ...[1, 2].map(() => api.call('POST', '/v1/sites', { body: { name: 'x', primary_domain: domain } })),
      ]);
      expect([202, 422].map((wanted) => answers.filter(({ status }) => status === wanted).length)).toEqual([1, 3]);
      for (const { json } of answers.filter(({ status }) => status === 422))
        expect(json).toMatchObject({ code: 'domain_in_use' });
      expect(await api.rows('SELECT 1 FROM sites WHERE primary_domain = $1', [domain])).toHaveLength(1);
      const won = await api.rows('SELECT 1 FROM deleted_sites WHERE primary_domain = $1 AND restored_at IS NOT NULL', [
        domain,
      ]);
      expect(won.length).toBe(answers.slice(0, 2).filter(({ status }) => status === 202).length);
    }
  });

  it('answers 503 when the storage cannot be asked', async () => {
    const { id, siteId } = await given();
    // `live/x` is no valid storage key, so the API cannot find out whether the storage has the backup.
    await api.rows("UPDATE backups SET storage_key = 'live/x' WHERE site_id = $1", [siteId]);
    const answer = await restore(id);
    expect([answer.status, answer.json]).toMatchObject([
      503,
      { code: 'dependency_unavailable', dependency: 'backup-storage' },
    ]);
  });

  it('refuses a customer with abuse_hold even while the storage does not answer, because the backup comes after it', async () => {
    const { id, siteId } = await given({ reason: 'abuse' });
    await api.rows("UPDATE backups SET storage_key = 'live/x' WHERE site_id = $1", [siteId]);
    expect(await read(id)).toMatchObject({ restorable: false, reason_code: 'abuse_hold' });
    expect((await restore(id)).json).toMatchObject({ status: 422, code: 'abuse_hold' });
    expect((await restore(id, { caller: staff })).status).toBe(503);
  });
});

describe('its preflight', () => {
  it('says what would happen and changes nothing', async () => {
    const { id, domain } = await given({ daysAgo: 29 });
    expect((await preflight(id)).json).toMatchObject({
      would: expect.stringContaining(domain),
      resource: `/v1/sites/deleted/${id}`,
      point: { id: expect.any(String) },
      refusal: null,
      findings: [{ code: 'purge_due_soon' }, { code: 'files_may_do' }],
      undo: false,
    });
    expect(await read(id)).toMatchObject({ restorable: true });
  });
});

describe('whose it is', () => {
  const paths: Array<[method: string, rest: string]> = [
    ['GET', ''],
    ['POST', '/restore'],
    ['POST', '/restore/preflight'],
    ['GET', '/workflows'],
    ['GET', `/workflows/${uuidv7()}`],
    ['GET', `/workflows/${uuidv7()}/events`],
    ['POST', `/workflows/${uuidv7()}/retry`],
    ['POST', `/workflows/${uuidv7()}/abandon`],
  ];
  const strangers = [
    ['another organisation', callerOf()],
    ['the other mode', { ...staff, mode: 'sandbox' as const }],
  ] as const;
  describe.each(strangers)('%s', (_who, caller) => {
    it.each(paths)('%s %s answers as if there were no such record', async (method, rest) => {
      const { id } = await given();
      const foreign = await api.call(method, `/v1/sites/deleted/${id}${rest}`, { caller });
      const missing = await api.call(method, `/v1/sites/deleted/${uuidv7()}${rest}`, { caller });
      expect(refusalOf(foreign)).toBe('404 deleted_site_not_found');
      expect(withoutRequestId(foreign)).toEqual(withoutRequestId(missing));
      expect(await api.rows('SELECT 1 FROM deleted_sites WHERE id = $1 AND restored_at IS NULL', [id])).toHaveLength(1);
    });
  });

  it.each(['sites.create', 'sites.view'] as const)('needs %s before it looks at anything', async (missing) => {
    const caller = { ...owner, scopes: owner.scopes.filter((scope) => scope !== missing) };
    const answer = await restore('nonsense', { caller });
    expect([answer.status, answer.json]).toMatchObject([403, { errors: [{ detail: missing }] }]);
  });
});

interface Listed {
  data: DeletedSiteView[];
  page: { next_cursor: string | null };
}
