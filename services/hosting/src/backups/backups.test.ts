import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { callerOf, type ServiceApi } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { givenBackup, givenSite, startApi } from '../../test/hosting-api';

const owner = callerOf();
let api: ServiceApi;
beforeAll(async () => {
  api = await startApi(owner);
});
afterAll(() => api.close());

const restore = (siteId: string, backupId: string, options: object = {}) =>
  api.call('POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: backupId }, ...options });
const take = (siteId: string, options: object = {}) =>
  api.call('POST', `/v1/sites/${siteId}/backups`, { body: {}, ...options });
const surfaceOf = async (siteId: string) =>
  (await api.call('GET', `/v1/sites/${siteId}/backups`)).json as SiteBackupSurface;

describe('the surface', () => {
  it('pages its backups as every list does, counts the allowance over all of them, and goes on from the first page that a restore answers', async () => {
    const siteId = await givenSite(api, owner);
    const ids: string[] = [];
    for (let made = 0; made < 5; made += 1) ids.unshift(await givenBackup(api, owner, siteId, { kind: 'on_demand' }));
    const pageOf = async (search: string): Promise<SiteBackupSurface> =>
      (await api.call('GET', `/v1/sites/${siteId}/backups?${search}`)).json as SiteBackupSurface;
    const seen: string[][] = [];
    for (let cursor: string | null = ''; cursor !== null && seen.length < 5; ) {
      const surface: SiteBackupSurface = await pageOf(`limit=2${cursor}`);
      expect(surface).toMatchObject({
        on_demand_used: 5,
        on_demand_remaining: 0,
        page: { limit: 2, has_more: seen.length < 2 },
      });
      seen.push(surface.backups.map(({ id }) => id));
      cursor = surface.page.next_cursor === null ? null : `&cursor=${surface.page.next_cursor}`;
    }
    expect(seen).toEqual([ids.slice(0, 2), ids.slice(2, 4), ids.slice(4)]);
    const { next_cursor } = (await pageOf('limit=2')).page;
    const other = { ...owner, keyId: uuidv7() };
    const refused = await api.call('GET', `/v1/sites/${siteId}/backups?cursor=${next_cursor}`, { caller: other });
    expect(refused.json).toMatchObject({ status: 422, code: 'invalid_cursor' });
    const accepted = (await restore(siteId, ids[4] ?? '')).json as SiteBackupSurface;
    expect([accepted.backups.map(({ id }) => id), accepted.page]).toEqual([
      ids,
      { limit: 50, has_more: false, next_cursor: null },
    ]);
  });

  it('of a new site claims nothing that was not proved', async () => {
    const siteId = await givenSite(api, owner);
    expect(await surfaceOf(siteId)).toEqual({
      site_id: siteId,
      backups: [],
      page: { next_cursor: null, has_more: false, limit: 50 },
      can_backup: true,
      in_progress: false,
      on_demand_backups: true,
      unsupported_reason: '',
      on_demand_limit: 5,
      on_demand_used: 0,
      on_demand_remaining: 5,
      on_demand_next_at: null,
      daily_backups: true,
      retention_days: 30,
      offsite_enabled: false,
      immutable: false,
      immutable_days: 30,
      immutability_verified_at: null,
      immutability_reason: 'never_checked',
      restore_drill_passed: false,
      restore_drill_at: null,
      restore_drill_reason: 'never_drilled',
    });
  });

  it('lists backups newest first, and an expired one as expired', async () => {
    const siteId = await givenSite(api, owner);
    const gone = await givenBackup(api, owner, siteId, { hoursAgo: 800, expiresInHours: -1 });
    const kept = await givenBackup(api, owner, siteId);
    const { backups } = await surfaceOf(siteId);
    expect(backups).toMatchObject([
      { id: kept, status: 'completed', restorable: true, location: 'worker_host', size_bytes: 1_000 },
      { id: gone, status: 'expired', restorable: false },
    ]);
  });
});

describe('POST /v1/sites/{siteId}/backups', () => {
  it('answers 202 with the surface and where to follow it', async () => {
    const siteId = await givenSite(api, owner);
    const answer = await take(siteId);
    expect([answer.status, answer.json]).toMatchObject([
      202,
      {
        in_progress: true,
        can_backup: false,
        on_demand_used: 1,
        backups: [{ kind: 'on_demand', status: 'queued', restorable: false }],
      },
    ]);
    expect(answer.headers['location']).toMatch(new RegExp(`^/v1/sites/${siteId}/workflows/[0-9a-f-]{36}$`));
  });

  it('refuses the sixth within 24 hours, counting neither failed ones nor safety copies', async () => {
    const siteId = await givenSite(api, owner);
    for (const hoursAgo of [23, 20, 3, 2, 1]) await givenBackup(api, owner, siteId, { kind: 'on_demand', hoursAgo });
    await givenBackup(api, owner, siteId, { kind: 'on_demand', status: 'failed' });
    await givenBackup(api, owner, siteId, { kind: 'pre_restore' });
    const surface = await surfaceOf(siteId);
    expect(surface).toMatchObject({ can_backup: false, on_demand_used: 5, on_demand_remaining: 0 });
    expect((Date.parse(surface.on_demand_next_at ?? '') - Date.now()) / 3_600_000).toBeCloseTo(1, 1);
    const answer = await take(siteId);
    expect([answer.status, answer.json]).toMatchObject([429, { code: 'on_demand_limit_reached' }]);
    expect(Number(answer.headers['retry-after'])).toBeGreaterThan(3_500);
    await api.rows("UPDATE backups SET created_at = created_at - interval '2 hours' WHERE site_id = $1", [siteId]);
    expect((await take(siteId)).status).toBe(202);
  });

  it.each(['provisioning', 'failed'])('refuses a site that is %s', async (status) => {
    const siteId = await givenSite(api, owner, { status });
    expect((await take(siteId)).json).toMatchObject({ code: 'site_not_ready' });
    expect(await surfaceOf(siteId)).toMatchObject({ can_backup: false });
  });
});

describe('POST /v1/sites/{siteId}/backups/restore', () => {
  it('answers 202 with the surface, marks the site and writes workflow and audit entry once', async () => {
    const siteId = await givenSite(api, owner);
    const backupId = await givenBackup(api, owner, siteId);
    const answer = await restore(siteId, backupId.toUpperCase());
    expect([answer.status, answer.json]).toMatchObject([
      202,
      { site_id: siteId, in_progress: true, can_backup: false },
    ]);
    expect(answer.headers['retry-after']).toBe('1');
    const workflow = (await api.call('GET', String(answer.headers['location']))).json;
    expect(workflow).toMatchObject({ kind: 'restore_backup', status: 'queued', progress: 0, error: null });
    expect((await api.call('GET', `/v1/sites/${siteId}`)).json).toMatchObject({ status: 'restoring' });
    const audited = await api.rows('SELECT action, actor_key_id, mode FROM audit_outbox WHERE target = $1', [
      `/v1/sites/${siteId}`,
    ]);
    expect(audited).toEqual([{ action: 'backup.restore', actor_key_id: owner.keyId, mode: 'live' }]);
  });

  it('of five at once accepts exactly one', async () => {
    const siteId = await givenSite(api, owner);
    const backupId = await givenBackup(api, owner, siteId);
    const answers = await Promise.all(Array.from({ length: 5 }, () => restore(siteId, backupId)));
    const accepted = answers.filter(({ status }) => status === 202);
    expect(accepted).toHaveLength(1);
    const workflowId = workflowIdOf(accepted[0]);
    for (const refused of answers.filter((answer) => !accepted.includes(answer))) {
      expect([refused.status, refused.json]).toMatchObject([
        422,
        { code: 'operation_in_progress', workflow_id: workflowId },
      ]);
    }
    expect(await auditedOf(api, `/v1/sites/${siteId}`)).toHaveLength(1);
  });

  it("answers another site's backup, another organisation's backup and a missing one alike", async () => {
    const siteId = await givenSite(api, owner);
    const stranger = callerOf();
    const points = [
      uuidv7(),
      await givenBackup(api, owner, await givenSite(api, owner)),
      await givenBackup(api, stranger, await givenSite(api, stranger)),
    ];
    const answers = await Promise.all(points.map((point) => restore(siteId, point)));
    for (const { status, json } of answers) expect([status, json]).toMatchObject([422, { code: 'backup_not_found' }]);
  });

  it('refuses first for a missing point, then for other work, then for the state of the point and of the site', async () => {
    const siteId = await givenSite(api, owner);
    const good = await givenBackup(api, owner, siteId);
    const failed = await givenBackup(api, owner, siteId, { status: 'failed' });
    const expired = await givenBackup(api, owner, siteId, { expiresInHours: -1 });
    expect((await take(siteId)).status).toBe(202);
    await api.rows("UPDATE sites SET status = 'suspended' WHERE id = $1", [siteId]);
    expect((await restore(siteId, uuidv7())).json).toMatchObject({ code: 'backup_not_found' });
    const { backups } = await surfaceOf(siteId);
    // The last point is the unfinished backup itself.
    for (const point of [good, failed, expired, backups[0]?.id ?? '']) {
      expect((await restore(siteId, point)).json).toMatchObject({
        code: 'operation_in_progress',
        workflow_id: expect.any(String),
      });
    }
    await api.rows(
      `UPDATE workflow SET status = 'needs_attention', error = '{"code":"step_failed"}' WHERE subject_id = $1`,
      [siteId],
    );
    expect((await restore(siteId, good)).json).toMatchObject({ code: 'needs_attention' });
    expect(await surfaceOf(siteId)).toMatchObject({ in_progress: false, can_backup: false });
    await api.rows("UPDATE workflow SET status = 'failed', finished_at = now() WHERE subject_id = $1", [siteId]);
    expect((await restore(siteId, failed)).json).toMatchObject({ code: 'backup_not_completed' });
    expect((await restore(siteId, expired)).json).toMatchObject({ code: 'backup_expired' });
  });

  it.each(['restart_app', 'copy_offsite', 'vendor_restore', 'delete_site'])(
    'every surface says that %s is in progress exactly while the guards do',
    async (kind) => {
      const siteId = await givenSite(api, owner);
      const point = await givenBackup(api, owner, siteId);
      await take(siteId);
      await api.rows('UPDATE workflow SET kind = $2 WHERE subject_id = $1', [siteId, kind]);
      const flagOf = async (path: string) =>
        ((await api.call('GET', `/v1/sites/${siteId}/${path}`)).json as { in_progress: boolean }).in_progress;
      expect((await restore(siteId, point)).json).toMatchObject({ code: 'operation_in_progress' });
      expect([await flagOf('backups'), await flagOf('offsite')]).toEqual([true, true]);
      await api.rows("UPDATE workflow SET status = 'succeeded', finished_at = now() WHERE subject_id = $1", [siteId]);
      expect([await flagOf('backups'), await flagOf('offsite')]).toEqual([false, false]);
      expect((await restore(siteId, point)).status).toBe(202);
    },
  );

  it.each([
    [{}],
    [{ backup_id: 'latest' }],
    [{ backup_id: uuidv7(), force: true }],
    [{ backup_id: [uuidv7()] }],
    [{ backup_id: `${uuidv7()}\n` }],
  ])('refuses the body %j', async (body) => {
    const answer = await api.call('POST', `/v1/sites/${uuidv7()}/backups/restore`, { body });
    expect([answer.status, answer.json]).toMatchObject([
      422,
      { code: expect.stringMatching(/^invalid_(request|json)$/) },
    ]);
  });

  it('names the permission that is missing before it looks at anything', async () => {
    const caller = { ...owner, scopes: owner.scopes.filter((scope) => scope !== 'hosting.backup.manage') };
    const answer = await api.call('POST', `/v1/sites/nonsense/backups/restore`, { body: 'x', caller });
    expect([answer.status, answer.json]).toMatchObject([403, { errors: [{ detail: 'hosting.backup.manage' }] }]);
  });

  it('executes a request again under the same key after a refusal that could pass', async () => {
    const siteId = await givenSite(api, owner);
    const backupId = await givenBackup(api, owner, siteId);
    expect((await take(siteId)).status).toBe(202);
    const idempotencyKey = uuidv7();
    expect((await restore(siteId, backupId, { idempotencyKey })).json).toMatchObject({ code: 'operation_in_progress' });
    await api.rows("UPDATE workflow SET status = 'succeeded', finished_at = now() WHERE subject_id = $1", [siteId]);
    expect((await restore(siteId, backupId, { idempotencyKey })).status).toBe(202);
  });
});

describe('its preflight', () => {
  const ask = (siteId: string, backupId: string) =>
    api.call('POST', `/v1/sites/${siteId}/backups/restore/preflight`, { body: { backup_id: backupId } });

  it.each([
    [200, true, 'INFO', 'HTTP: 200; SQL: works. After the restore HTTP must answer below 500 and SQL must work.'],
    [
      500,
      true,
      'WARNING',
      'HTTP: 500; SQL: works. After the restore HTTP may answer a server error again and SQL must work.',
    ],
    [
      null,
      false,
      'WARNING',
      'HTTP: not on record; SQL: refused. After the restore HTTP must answer below 500 and SQL may be refused again.',
    ],
  ])(
    'tells how the site answered at the backup and which answers are accepted: HTTP %s, SQL %s',
    async (httpStatus, sqlWorks, level, detail) => {
      const siteId = await givenSite(api, owner);
      const backupId = await givenBackup(api, owner, siteId);
      await api.rows('UPDATE backups SET http_status = $2, sql_works = $3 WHERE id = $1', [
        backupId,
        httpStatus,
        sqlWorks,
      ]);
      const { findings } = (await ask(siteId, backupId)).json as Preflight;
      expect(findings).toContainEqual({
        level,
        code: 'answer_on_record',
        detail: `How the site answered when this was taken: ${detail}`,
      });
    },
  );

  it('says what would happen and changes nothing', async () => {
    const siteId = await givenSite(api, owner);
    const backupId = await givenBackup(api, owner, siteId, { hoursAgo: 200 });
    const answer = await ask(siteId, backupId);
    expect([answer.status, answer.json]).toMatchObject([
      200,
      { resource: `/v1/sites/${siteId}`, refusal: null, space: null, point: { id: backupId } },
    ]);
    const { findings, point } = answer.json as { findings: Array<{ code: string }>; point: { age_seconds: number } };
    expect(point.age_seconds).toBeGreaterThanOrEqual(200 * 3_600 - 1);
    expect(findings.map(({ code }) => code)).toEqual([
      'old_backup',
      'host_unreachable',
      'backup_data_missing',
      'files_may_do',
    ]);
    expect(await api.rows('SELECT 1 FROM workflow WHERE subject_id = $1', [siteId])).toHaveLength(0);
  });

  it('gives exactly the refusal of the restore', async () => {
    const siteId = await givenSite(api, owner);
    const backupId = await givenBackup(api, owner, siteId);
    await take(siteId);
    for (const point of [uuidv7(), backupId]) {
      const { request_id: _real, ...real } = (await restore(siteId, point)).json as Record<string, unknown>;
      const { request_id: _told, ...told } = ((await ask(siteId, point)).json as { refusal: Record<string, unknown> })
        .refusal;
      expect(told).toEqual(real);
    }
  });
});
