/**
 * Tests restores of deleted sites, above all their failures.
 *
 * @tier long
 * @processes
 */
import type { ChildProcess } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import type { DeletedSiteView } from '@drydock/contracts/hosting/deleted-sites';
import { readSharedCluster } from '@drydock/postgres/testing/test-cluster';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { until } from '@drydock/testing/wait';
import { deletionOf } from '../../test/deleted-site';
import { type HostingWorld, makeBackup, makeSite, openWorld } from '../../test/hosting-world';
import { stopClock, succeedPlatformWork } from '../../test/platform-work';
import { fillSite, makeSocket, runSql, stateOf } from '../../test/site-state';
import { checkServingWorkflow } from './check-serving.workflow';

let world: HostingWorld;
let worker: ChildProcess;
const faults = createFaultTokens();
beforeAll(async () => {
  world = await openWorld('postgres', callerOf());
  await stopClock(world.api);
  worker = world.spawnWorker({ DRYDOCK_FAULTS: faults.folder });
});
afterAll(async () => {
  await world.close();
  faults.remove();
});

/** Deletes a site. Resolves with the id of its record. */
async function deletedSite(siteId: string): Promise<string> {
  await succeed(world, 'DELETE', `/v1/sites/${siteId}`);
  return deletionOf(world.api, siteId);
}
const read = async (id: string) => (await world.api.call('GET', `/v1/sites/deleted/${id}`)).json as DeletedSiteView;
const siteOf = async (siteId: string) => (await world.api.call('GET', `/v1/sites/${siteId}`)).json;

it('a deleted site comes back exactly as it was, under its id and domain, and lives on', async () => {
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const before = await stateOf(world, siteId);
  makeSocket(path.join((await world.placeOf(siteId)).filesDir, 'socket'));
  const described = { name: 'Bakery', metadata: { contract: 'C-1041' } };
  await world.api.call('PATCH', `/v1/sites/${siteId}`, { body: described });
  const deletion = await world.api.call('POST', `/v1/sites/${siteId}/deletion/preflight`);
  expect(deletion.json).toMatchObject({
    would: expect.stringContaining('It can come back'),
    refusal: null,
    findings: [],
  });
  const id = await deletedSite(siteId);
  expect(await read(id)).toMatchObject({ restorable: true, reason: 'customer', deleted_by: world.caller.keyId });
  const space = { needed_bytes: expect.any(Number) };
  const findings = [
    { level: 'WARNING', code: 'paths_skipped', detail: expect.stringContaining('socket (a socket or a device)') },
    { level: 'INFO', code: 'answer_on_record', detail: expect.stringContaining('HTTP: 200; SQL: works') },
  ];
  expect((await world.api.call('POST', `/v1/sites/deleted/${id}/restore/preflight`)).json).toMatchObject({
    refusal: null,
    space,
    findings: [...findings, { level: 'INFO', code: 'files_may_do' }],
  });
  await succeed(world, 'POST', `/v1/sites/deleted/${id}/restore`);
  expect(await siteOf(siteId)).toMatchObject({ id: siteId, status: 'active', ...described });
  const after = await stateOf(world, siteId);
  expect([after.page, after.tree, after.database]).toEqual([before.page, before.tree, before.database]);
  expect(await read(id)).toMatchObject({ restorable: false, reason_code: 'already_restored' });
  const { releases } = await world.host.readSite(siteId);
  await until(async () => (await world.host.readSite(siteId)).releases.length === 1, {
    what: `one release of ${releases.join()}`,
  });
  // The last backup has an expiry again, and the sequence numbers of backups go on.
  const next = await makeBackup(world, siteId);
  const { backups } = (await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as SiteBackupSurface;
  expect(backups).toMatchObject([{ id: next }, { expires_at: expect.any(String), status: 'completed' }]);
  const again = await deletedSite(siteId);
  await succeed(world, 'POST', `/v1/sites/deleted/${again}/restore`);
  expect((await stateOf(world, siteId)).page).toBe(before.page);
});

it('is suspended while it is rebuilt, and active once it serves', async () => {
  const siteId = await makeSite(world);
  const id = await deletedSite(siteId);
  worker.kill('SIGSTOP');
  const answer = await world.api.call('POST', `/v1/sites/deleted/${id}/restore`);
  expect(await siteOf(siteId)).toMatchObject({ status: 'suspended' });
  worker.kill('SIGCONT');
  expect(await ended(world, answer.headers['location'])).toMatchObject({ status: 'succeeded' });
  expect(await siteOf(siteId)).toMatchObject({ status: 'active' });
});

it('a rebuild that fails gives the record and the domain back, and leaves nothing on the host', async () => {
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const id = await deletedSite(siteId);
  const [row] = await world.api.rows<{ storage_key: string }>('SELECT storage_key FROM backups WHERE site_id = $1', [
    siteId,
  ]);
  const folder = path.join(world.backupsDir, row?.storage_key ?? '');
  const segment = path.join(folder, 'segment-00000000');
  const whole = readFileSync(segment);
  const bytes = Buffer.from(whole);
  bytes[bytes.length >> 1] = (bytes[bytes.length >> 1] ?? 0) ^ 1;
  writeFileSync(segment, bytes);
  const answer = await world.api.call('POST', `/v1/sites/deleted/${id}/restore`);
  const view = await ended(world, answer.headers['location']);
  expect(view).toMatchObject({ status: 'failed', error: { code: 'backup_tampered' } });
  expect(await read(id)).toMatchObject({ restorable: true, restored_at: null, reason_code: '' });
  expect(await siteOf(siteId)).toMatchObject({ code: 'site_not_found' });
  await expect(world.host.readSite(siteId)).rejects.toMatchObject({ code: 'unknown_site' });
  writeFileSync(segment, whole);
  await succeed(world, 'POST', `/v1/sites/deleted/${id}/restore`);
});

describe('a site that was broken when it was deleted', () => {
  const pageOf = async (siteId: string): Promise<string> =>
    path.join((await world.placeOf(siteId)).filesDir, 'index.html');
  /** Creates a site whose page fails and whose database works. */
  const brokenSite = async (): Promise<string> => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    writeFileSync(await pageOf(siteId), '<?sql select nothing from nowhere ?>');
    return siteId;
  };
  const isDue = (siteId: string) =>
    world.api.rows("UPDATE sites SET serve_check_at = now() - interval '1 s' WHERE id = $1", [siteId]);

  it('comes back with everything that was in it, stays suspended while it is broken, and is active once it is mended', async () => {
    const siteId = await brokenSite();
    const before = await stateOf(world, siteId);
    await world.api.rows("UPDATE sites SET created_at = now() - interval '1 year' WHERE id = $1", [siteId]);
    const id = await deletedSite(siteId);
    await succeed(world, 'POST', `/v1/sites/deleted/${id}/restore`);
    const after = await stateOf(world, siteId);
    expect([after.tree, after.database]).toEqual([before.tree, before.database]);
    await isDue(siteId);
    await succeedPlatformWork(world.api, checkServingWorkflow);
    expect(await siteOf(siteId)).toMatchObject({ status: 'suspended' });
    // In the first minutes after its restore a site is checked often, even if the site is old.
    const [next] = await world.api.rows<{ is_soon: boolean }>(
      "SELECT serve_check_at < now() + interval '10 minutes' AS is_soon FROM sites WHERE id = $1",
      [siteId],
    );
    expect(next).toEqual({ is_soon: true });
    writeFileSync(await pageOf(siteId), 'mended');
    await isDue(siteId);
    await succeedPlatformWork(world.api, checkServingWorkflow);
    expect(await siteOf(siteId)).toMatchObject({ status: 'active' });
    expect(await read(id)).toMatchObject({ restored_at: expect.any(String), reason_code: 'already_restored' });
  });

  it('and waits to be repaired is not taken down by a later failure of its restore', async () => {
    const siteId = await brokenSite();
    const id = await deletedSite(siteId);
    faults.arm('restore_deleted_site.retire.before', 'throw');
    const { headers } = await world.api.call('POST', `/v1/sites/deleted/${id}/restore`);
    expect(await ended(world, headers['location'])).toMatchObject({ status: 'needs_attention' });
    expect((await world.api.call('POST', `${String(headers['location'])}/abandon`)).status).toBe(202);
    await until(async () => (await ended(world, headers['location'])).status === 'failed', {
      timeoutMs: 30_000,
      what: 'its end',
    });
    expect(await siteOf(siteId)).toMatchObject({ status: 'suspended' });
    expect(await read(id)).toMatchObject({ restored_at: expect.any(String) });
  });

  it('and is under other work since is left alone', async () => {
    const siteId = await brokenSite();
    const id = await deletedSite(siteId);
    await succeed(world, 'POST', `/v1/sites/deleted/${id}/restore`);
    writeFileSync(await pageOf(siteId), 'mended');
    await isDue(siteId);
    await world.api.rows("UPDATE sites SET status = 'restoring' WHERE id = $1", [siteId]);
    await succeedPlatformWork(world.api, checkServingWorkflow);
    expect(await siteOf(siteId)).toMatchObject({ status: 'restoring' });
    await world.api.rows("UPDATE sites SET status = 'suspended' WHERE id = $1", [siteId]);
    await succeedPlatformWork(world.api, checkServingWorkflow);
    expect(await siteOf(siteId)).toMatchObject({ status: 'active' });
  });
});

it('a site that is suspended for another reason does not become active because it serves', async () => {
  const siteId = await makeSite(world);
  await world.api.rows("UPDATE sites SET status = 'suspended' WHERE id = $1", [siteId]);
  await succeedPlatformWork(world.api, checkServingWorkflow);
  expect(await siteOf(siteId)).toMatchObject({ status: 'suspended' });
});

it('a site whose database refuses queries is taken down again, and its record can be restored again', async () => {
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const id = await deletedSite(siteId);
  faults.arm('restore_deleted_site.probe.before', 'stop');
  const { headers } = await world.api.call('POST', `/v1/sites/deleted/${id}/restore`);
  await until(() => faults.left().length === 0, { what: 'the probe' });
  const { username } = new URL((await world.placeOf(siteId)).databaseUrl);
  await runSql(readSharedCluster().adminUrl, `ALTER ROLE "${username}" NOLOGIN`);
  worker.kill('SIGCONT');
  const view = await ended(world, headers['location']);
  expect(view).toMatchObject({ status: 'failed', error: { code: 'restore_probe_failed' } });
  expect(await read(id)).toMatchObject({ restorable: true });
  await expect(world.host.readSite(siteId)).rejects.toMatchObject({ code: 'unknown_site' });
});

it.each(['thaw', 'retire'])(
  'a site that serves again is never taken down: what its visitors have written since stays, also if %s fails',
  async (step) => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    const id = await deletedSite(siteId);
    faults.arm(`restore_deleted_site.${step}.after_effect`, 'throw');
    const { headers } = await world.api.call('POST', `/v1/sites/deleted/${id}/restore`);
    expect(await ended(world, headers['location'])).toMatchObject({ status: 'needs_attention' });
    await fillSite(world, siteId, 2);
    const written = await stateOf(world, siteId);
    expect((await world.api.call('POST', `${String(headers['location'])}/abandon`)).status).toBe(202);
    await until(async () => (await ended(world, headers['location'])).status === 'failed', {
      timeoutMs: 30_000,
      what: 'its end',
    });
    expect(await siteOf(siteId)).toMatchObject({ status: 'active' });
    expect(await stateOf(world, siteId)).toEqual(written);
    expect(await read(id)).toMatchObject({ restored_at: expect.any(String), reason_code: 'already_restored' });
    const { backups } = (await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as SiteBackupSurface;
    expect(backups).toMatchObject([{ status: 'completed', expires_at: expect.any(String) }]);
  },
);

it('a site whose deletion was abandoned half-way comes back from the last backup of that deletion', async () => {
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const before = await stateOf(world, siteId);
  faults.arm('delete_site.destroy.after_effect', 'throw');
  const { headers } = await world.api.call('DELETE', `/v1/sites/${siteId}`);
  expect(await ended(world, headers['location'])).toMatchObject({ status: 'needs_attention' });
  const made = await siteOf(siteId);
  expect(await world.api.call('POST', `${String(headers['location'])}/abandon`)).toMatchObject({
    status: 202,
    json: { status: 'failed' },
  });
  expect(await siteOf(siteId)).toMatchObject({ status: 'failed' });
  const told = await world.api.call('POST', `/v1/sites/${siteId}/deletion/preflight`);
  const id = await deletedSite(siteId);
  expect(await read(id)).toMatchObject({ restorable: true, reason_code: '' });
  const [kept] = await world.api.rows<{ id: string }>('SELECT id FROM backups WHERE site_id = $1', [siteId]);
  expect(told.json).toMatchObject({
    would: expect.stringContaining('It can come back'),
    findings: [{ code: 'no_last_backup', detail: expect.stringContaining(kept?.id ?? 'no id') }],
  });
  await succeed(world, 'POST', `/v1/sites/deleted/${id}/restore`);
  expect((await stateOf(world, siteId)).page).toBe(before.page);
  expect(await siteOf(siteId)).toMatchObject({ created_at: Reflect.get(made as object, 'created_at') });
});

it('a site that its host has lost can come back from its newest backup', async () => {
  const siteId = await makeSite(world);
  await makeBackup(world, siteId);
  const [last] = await world.api.rows<{ fence: string }>('SELECT max(fence)::text AS fence FROM workflow');
  await world.host.destroySite(siteId, { fence: last?.fence ?? '' });
  const id = await deletedSite(siteId);
  const [row] = await world.api.rows('SELECT status, expires_at FROM backups WHERE site_id = $1', [siteId]);
  // The deleted site needs this backup, so it does not expire.
  expect([await read(id), row]).toMatchObject([
    { restorable: true, reason_code: '' },
    { status: 'completed', expires_at: null },
  ]);
});

it('a deletion whose site leaves its host before it is packed fails, and the site stays with its backups', async () => {
  const siteId = await makeSite(world);
  await makeBackup(world, siteId);
  faults.arm('delete_site.pack.before', 'stop');
  const { headers } = await world.api.call('DELETE', `/v1/sites/${siteId}`);
  await until(() => faults.left().length === 0, { what: 'the packing' });
  const [last] = await world.api.rows<{ fence: string }>('SELECT max(fence)::text AS fence FROM workflow');
  await world.host.destroySite(siteId, { fence: last?.fence ?? '' });
  worker.kill('SIGCONT');
  expect(await ended(world, headers['location'])).toMatchObject({ status: 'failed', error: { code: 'superseded' } });
  expect(await siteOf(siteId)).toMatchObject({ status: 'active' });
  const { backups } = (await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as SiteBackupSurface;
  expect(backups).toMatchObject([{ status: 'failed' }, { status: 'completed' }]);
});
