/**
 * Tests restores and deletions, above all their failures.
 *
 * @tier long
 * @processes
 */
import { execFileSync } from 'node:child_process';
import { readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { serviceBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { type HostingWorld, makeBackup, makeSite, openWorld } from '../../test/hosting-world';
import { fillSite, runSql, stateOf } from '../../test/site-state';

/** The preflight of a restore of files and database has this finding. */
const filesMayDo = { level: 'INFO', code: 'files_may_do' };

describe.each(serviceBackends())('a restore, with the queue on %s', (backend) => {
  let world: HostingWorld;
  beforeAll(async () => {
    world = await openWorld(backend, callerOf());
    world.spawnWorker();
  });
  afterAll(() => world.close());

  const restore = (siteId: string, backupId: string) =>
    world.api.call('POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: backupId } });
  const surfaceOf = async (siteId: string) =>
    (await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as SiteBackupSurface;

  it('gives back exactly the tree and the database of the backup, and keeps what it replaced', async () => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    const old = await stateOf(world, siteId);
    expect(old.page).toBe('200 file=1 row=1');
    const backupId = await makeBackup(world, siteId);
    await fillSite(world, siteId, 2);
    const changed = await stateOf(world, siteId);
    await succeed(world, 'POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: backupId } });
    expect(await stateOf(world, siteId)).toEqual(old);
    const surface = await surfaceOf(siteId);
    expect(surface).toMatchObject({ in_progress: false, can_backup: true, on_demand_used: 1 });
    expect(surface.backups).toMatchObject([
      { kind: 'pre_restore', status: 'completed', restorable: true },
      { id: backupId, status: 'completed' },
    ]);
    expect((await world.api.call('GET', `/v1/sites/${siteId}`)).json).toMatchObject({ status: 'active' });
    const [safetyCopy] = surface.backups;
    // The first twelve hex digits of a backup's id are the time at which it began, in milliseconds since 1970.
    expect(Date.parse(safetyCopy?.created_at ?? '')).toBe(
      Number.parseInt((safetyCopy?.id ?? '').replaceAll('-', '').slice(0, 12), 16),
    );
    await succeed(world, 'POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: safetyCopy?.id ?? '' } });
    expect(await stateOf(world, siteId)).toEqual(changed);
    await until(async () => (await world.host.readSite(siteId)).releases.length === 1, {
      what: 'old releases to be retired',
    });
  });

  it('refuses a tampered archive whole and leaves the site untouched', async () => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    const backupId = await makeBackup(world, siteId);
    await fillSite(world, siteId, 2);
    const before = await stateOf(world, siteId);
    tamper(path.join(world.backupsDir, 'live', world.caller.orgId, siteId, backupId));
    const answer = await restore(siteId, backupId);
    const view = await ended(world, answer.headers['location']);
    expect(view).toMatchObject({ status: 'failed', error: { code: 'backup_tampered' } });
    expect(await stateOf(world, siteId)).toEqual(before);
    const opsOf = world.ledger().filter(({ workflowId }) => workflowId === view.id);
    expect(opsOf).toEqual([]);
    expect((await world.api.call('GET', `/v1/sites/${siteId}`)).json).toMatchObject({ status: 'active' });
  });

  it('refuses objects of another organisation’s backup, and FIFOs, in the place of its own, and then restores as ever', async () => {
    const caller = callerOf();
    const call: typeof world.api.call = (method, to, options) => world.api.call(method, to, { ...options, caller });
    const others: HostingWorld = { ...world, caller, api: { ...world.api, caller, call } };
    const [siteId, foreignId] = [await makeSite(world), await makeSite(others)];
    const [backupId, foreign] = [await makeBackup(world, siteId), await makeBackup(others, foreignId)];
    const own = attemptOf(path.join(world.backupsDir, 'live', world.caller.orgId, siteId, backupId));
    const theirs = attemptOf(path.join(world.backupsDir, 'live', caller.orgId, foreignId, foreign));
    await fillSite(world, siteId, 2);
    const before = await stateOf(world, siteId);
    const codeOf = async () => (await ended(world, (await restore(siteId, backupId)).headers['location'])).error?.code;
    for (const name of ['manifest', 'index-00000000', 'segment-00000000']) {
      const file = path.join(own, name);
      const bytes = readFileSync(file);
      writeFileSync(file, readFileSync(path.join(theirs, name)));
      expect([name, await codeOf()]).toEqual([name, 'backup_tampered']);
      rmSync(file);
      execFileSync('mkfifo', [file]);
      expect([name, await codeOf()]).toEqual([name, name === 'manifest' ? 'backup_missing' : 'backup_tampered']);
      rmSync(file);
      writeFileSync(file, bytes);
    }
    expect(await stateOf(world, siteId)).toEqual(before);
    await succeed(world, 'POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: backupId } });
  });

  it('tells that an archive is missing, and leaves the site untouched', async () => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    const backupId = await makeBackup(world, siteId);
    const before = await stateOf(world, siteId);
    rmSync(path.join(world.backupsDir, 'live', world.caller.orgId, siteId, backupId), { recursive: true });
    const view = await ended(world, (await restore(siteId, backupId)).headers['location']);
    expect(view).toMatchObject({ status: 'failed', error: { code: 'backup_missing' } });
    expect(await stateOf(world, siteId)).toEqual(before);
  });

  it('notices an older valid archive in the place of a newer one', async () => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    const older = await makeBackup(world, siteId);
    const newer = await makeBackup(world, siteId);
    await world.api.rows(
      'UPDATE backups SET storage_key = (SELECT storage_key FROM backups WHERE id = $1) WHERE id = $2',
      [older, newer],
    );
    const view = await ended(world, (await restore(siteId, newer)).headers['location']);
    expect(view).toMatchObject({ status: 'failed', error: { code: 'backup_tampered' } });
  });

  it('brings back a site that failed when it was backed up; the safety copy records how the replaced site answered', async () => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    await runSql((await world.placeOf(siteId)).databaseUrl, 'DROP TABLE version');
    const broken = await stateOf(world, siteId);
    expect(broken.page).toMatch(/^500 /);
    const backupId = await makeBackup(world, siteId);
    await fillSite(world, siteId, 2);
    const preflight = await world.api.call('POST', `/v1/sites/${siteId}/backups/restore/preflight`, {
      body: { backup_id: backupId },
    });
    expect(preflight.json).toMatchObject({
      refusal: null,
      findings: [{ level: 'WARNING', code: 'answer_on_record' }, filesMayDo],
    });
    await succeed(world, 'POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: backupId } });
    expect(await stateOf(world, siteId)).toEqual(broken);
    const recorded = await world.api.rows(
      'SELECT kind, http_status, sql_works FROM backups WHERE site_id = $1 ORDER BY id',
      [siteId],
    );
    expect(recorded).toEqual([
      { kind: 'on_demand', http_status: 500, sql_works: true },
      { kind: 'pre_restore', http_status: 200, sql_works: true },
    ]);
    await succeed(world, 'DELETE', `/v1/sites/${siteId}`);
    const [last] = await world.api.rows(
      'SELECT http_status, sql_works FROM backups WHERE site_id = $1 ORDER BY id DESC LIMIT 1',
      [siteId],
    );
    expect(last).toEqual({ http_status: 500, sql_works: true });
  });

  it.each([200, null])(
    'switches back by itself when the restored site fails, and HTTP %s is on record',
    async (httpStatus) => {
      const siteId = await makeSite(world);
      await fillSite(world, siteId, 1);
      await runSql((await world.placeOf(siteId)).databaseUrl, 'DROP TABLE version');
      const backupId = await makeBackup(world, siteId);
      await world.api.rows('UPDATE backups SET http_status = $2 WHERE id = $1', [backupId, httpStatus]);
      await fillSite(world, siteId, 2);
      const before = await stateOf(world, siteId);
      const view = await ended(world, (await restore(siteId, backupId)).headers['location']);
      const detail = expect.stringContaining(
        `HTTP failed. HTTP: 500; SQL: works. When the backup was taken: HTTP: ${httpStatus ?? 'not on record'};`,
      );
      expect(view).toMatchObject({ status: 'failed', error: { code: 'restore_probe_failed', detail } });
      expect(await stateOf(world, siteId)).toEqual(before);
      const { releases, frozen } = await world.host.readSite(siteId);
      expect([releases.length, frozen]).toEqual([1, false]);
      const { backups } = await surfaceOf(siteId);
      expect(backups.map(({ kind }) => kind)).toEqual(['on_demand']);
    },
  );

  it('never takes back what visitors may have written: a restore that serves waits for staff if its end fails', async () => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    const backupId = await makeBackup(world, siteId);
    await fillSite(world, siteId, 2);
    await world.endWorkers();
    const faults = createFaultTokens();
    faults.arm('restore_backup.thaw.after_effect', 'throw');
    world.spawnWorker({ DRYDOCK_FAULTS: faults.folder });
    const { headers } = await restore(siteId, backupId);
    expect(await ended(world, headers['location'])).toMatchObject({ status: 'needs_attention' });
    await runSql((await world.placeOf(siteId)).databaseUrl, "INSERT INTO only_in_1 (note) VALUES ('of a visitor')");
    const written = await stateOf(world, siteId);
    expect(written.page).toBe('200 file=1 row=1');
    expect((await world.api.call('POST', `${String(headers['location'])}/retry`)).status).toBe(202);
    await until(async () => (await ended(world, headers['location'])).status === 'succeeded', { what: 'its end' });
    expect(await stateOf(world, siteId)).toEqual(written);
    expect((await surfaceOf(siteId)).backups).toMatchObject([{ kind: 'pre_restore', status: 'completed' }, {}]);
    faults.remove();
  });

  it('is carried out once it was accepted, even if the backup expires while it waits for a worker', async () => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    const old = await stateOf(world, siteId);
    const backupId = await makeBackup(world, siteId);
    await fillSite(world, siteId, 2);
    await world.endWorkers();
    const { headers } = await restore(siteId, backupId);
    await world.api.rows("UPDATE backups SET expires_at = now() - interval '1 second' WHERE id = $1", [backupId]);
    world.spawnWorker();
    expect(await ended(world, headers['location'])).toMatchObject({ status: 'succeeded' });
    expect(await stateOf(world, siteId)).toEqual(old);
  });

  it('refuses to stage what the disk has no room for', async () => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    const backupId = await makeBackup(world, siteId);
    const before = await stateOf(world, siteId);
    await world.api.rows('UPDATE backups SET raw_bytes = 1::bigint << 50 WHERE id = $1', [backupId]);
    const preflight = await world.api.call('POST', `/v1/sites/${siteId}/backups/restore/preflight`, {
      body: { backup_id: backupId },
    });
    expect(preflight.json).toMatchObject({
      refusal: null,
      findings: [{ code: 'storage_full' }, { level: 'INFO', code: 'answer_on_record' }, filesMayDo],
    });
    const view = await ended(world, (await restore(siteId, backupId)).headers['location']);
    expect(view).toMatchObject({ status: 'failed', error: { code: 'storage_full' } });
    expect(await stateOf(world, siteId)).toEqual(before);
  });

  it('deletes a site without packing it if its owner wants no last backup, and keeps the newest backup', async () => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    const backupId = await makeBackup(world, siteId);
    await succeed(world, 'DELETE', `/v1/sites/${siteId}?last_backup=none`);
    await expect(world.host.readSite(siteId)).rejects.toMatchObject({ code: 'unknown_site' });
    const rows = await world.api.rows('SELECT id, kind, expires_at FROM backups WHERE site_id = $1', [siteId]);
    expect(rows).toEqual([{ id: backupId, kind: 'on_demand', expires_at: null }]);
    const [row] = await world.api.rows('SELECT backup_id FROM deleted_sites WHERE site_id = $1', [siteId]);
    expect(row).toEqual({ backup_id: backupId });
  });

  it('leaves nothing of a deleted site but its last backup, and frees its domain', async () => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    const { primary_domain: domain } = (await world.api.call('GET', `/v1/sites/${siteId}`)).json as {
      primary_domain: string;
    };
    await succeed(world, 'DELETE', `/v1/sites/${siteId}`);
    expect((await world.api.call('GET', `/v1/sites/${siteId}`)).json).toMatchObject({ code: 'site_not_found' });
    await expect(world.host.readSite(siteId)).rejects.toMatchObject({ code: 'unknown_site' });
    const [row] = await world.api.rows('SELECT reason, backup_id, deleted_by FROM deleted_sites WHERE site_id = $1', [
      siteId,
    ]);
    expect(row).toMatchObject({ reason: 'customer', deleted_by: world.caller.keyId, backup_id: expect.any(String) });
    const [backup] = await world.api.rows('SELECT status, expires_at FROM backups WHERE site_id = $1', [siteId]);
    expect(backup).toEqual({ status: 'completed', expires_at: null });
    await succeed(world, 'POST', '/v1/sites', { body: { name: 'Again', primary_domain: domain } });
  });
});

/** The folder of a backup's objects. */
const attemptOf = (backupFolder: string): string => path.join(backupFolder, readdirSync(backupFolder)[0] ?? '');

/** Flips a bit in the middle of the first segment. */
function tamper(backupFolder: string): void {
  const file = path.join(attemptOf(backupFolder), 'segment-00000000');
  const bytes = readFileSync(file);
  const middle = Math.floor(bytes.length / 2);
  bytes[middle] = (bytes[middle] ?? 0) ^ 1;
  writeFileSync(file, bytes);
}
