/**
 * Runs the main operations of hosting. Other suites test their failures.
 * @processes
 */
import { readdirSync } from 'node:fs';
import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { createFaultTokens } from '@drydock/testing/fault-tokens';
import { fenceViolations, repetitionViolations } from '@drydock/testing/ledger';
import { serviceBackends } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { deletionOf } from '../test/deleted-site';
import { makeBackup, makeSite } from '../test/hosting-world';
import { type OffsiteWorld, openOffsiteWorld, restoreCopy } from '../test/offsite-world';
import { fillSite, type SiteState, stateOf } from '../test/site-state';
import { openVendor, vendorContent } from '../test/vendor';
import { atRest, donesOf, makeVendorSite, restore, surfaceOf, type VendorWorld } from '../test/vendor-world';

describe.each(serviceBackends())('a site, with the queue on %s', (backend) => {
  let world: OffsiteWorld & VendorWorld;
  let siteId: string;
  let first: SiteState;
  let backupId: string;
  let copyId: string;
  beforeAll(async () => {
    const vendor = await openVendor();
    world = { ...(await openOffsiteWorld(backend, callerOf(), vendor.environment)), vendor };
    world.spawnWorker();
    siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    first = await stateOf(world, siteId);
    backupId = await makeBackup(world, siteId);
    await world.configure(siteId);
    copyId = await world.copy(siteId, 'full');
  });
  afterAll(async () => {
    await world.api.rows("DELETE FROM sites WHERE platform = 'vendor'");
    await world.close();
    await world.vendor.close();
  });

  it('is restored exactly although the worker is killed right behind the switch, and its safety copy brings back what was replaced', async () => {
    await fillSite(world, siteId, 2);
    const replaced = await stateOf(world, siteId);
    const { current_release: release } = await world.host.readSite(siteId);
    await world.endWorkers();
    const faults = createFaultTokens();
    faults.arm('restore_backup.switch.after_effect', 'kill');
    const worker = world.spawnWorker({ DRYDOCK_FAULTS: faults.folder });
    const accepted = await world.api.call('POST', `/v1/sites/${siteId}/backups/restore`, {
      body: { backup_id: backupId },
    });
    await until(() => worker.signalCode === 'SIGKILL', { timeoutMs: 90_000, what: 'the death of the worker' });
    expect((await world.host.readSite(siteId)).current_release).not.toBe(release);
    world.spawnWorker();
    const view = await ended(world, accepted.headers['location']);
    expect([view.status, faults.left()]).toEqual(['succeeded', []]);
    expect(await stateOf(world, siteId)).toEqual(first);
    expect(world.ledger().filter(({ workflowId, op }) => workflowId === view.id && op === 'switch')).not.toEqual([]);
    expect([...fenceViolations(world.ledger()), ...repetitionViolations(world.ledger())]).toEqual([]);
    faults.remove();
    const { backups } = (await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as SiteBackupSurface;
    expect(backups.map(({ kind, status }) => `${kind} ${status}`)).toEqual([
      'pre_restore completed',
      'on_demand completed',
    ]);
    await succeed(world, 'POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: backups[0]?.id } });
    expect(await stateOf(world, siteId)).toEqual(replaced);
  });

  it('is restored exactly from the customer’s own storage, of which nothing stays on our disk', async () => {
    await fillSite(world, siteId, 3);
    expect(await restoreCopy(world, siteId, copyId)).toMatchObject({ status: 'succeeded' });
    expect(await stateOf(world, siteId)).toEqual(first);
    expect(readdirSync(world.spoolDir)).toEqual([]);
  });

  it('comes back exactly as it was when it was deleted', async () => {
    await fillSite(world, siteId, 4);
    const before = await stateOf(world, siteId);
    await succeed(world, 'DELETE', `/v1/sites/${siteId}`);
    expect((await world.api.call('GET', `/v1/sites/${siteId}`)).json).toMatchObject({ code: 'site_not_found' });
    await expect(world.host.readSite(siteId)).rejects.toMatchObject({ code: 'unknown_site' });
    await succeed(world, 'POST', `/v1/sites/deleted/${await deletionOf(world.api, siteId)}/restore`);
    expect((await world.api.call('GET', `/v1/sites/${siteId}`)).json).toMatchObject({ id: siteId, status: 'active' });
    expect(await stateOf(world, siteId)).toEqual(before);
  });

  it('of a vendor is rolled back to the vendor’s own snapshot, once', async () => {
    const { siteId: vendorSiteId, packageId } = await makeVendorSite(world);
    const timestamp = (await surfaceOf(world, vendorSiteId)).web?.points[0]?.timestamp ?? '';
    const answer = await restore(world, vendorSiteId, { scope: 'web', timestamp });
    expect([answer.status, answer.json]).toMatchObject([202, { in_progress: true }]);
    await atRest(world, vendorSiteId);
    expect(await ended(world, answer.headers['location'])).toMatchObject({ status: 'succeeded' });
    expect(await world.vendor.content(packageId)).toEqual({ ...vendorContent(2), web: vendorContent(1).web });
    expect(await donesOf(world, packageId)).toEqual(['restore']);
  });
});
