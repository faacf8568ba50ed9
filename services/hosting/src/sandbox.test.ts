/**
 * @tier long
 * @processes
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { ended } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { type HostingWorld, makeBackup, makeSite, openWorld } from '../test/hosting-world';
import { fillSite, stateOf } from '../test/site-state';

let world: HostingWorld;
beforeAll(async () => {
  world = await openWorld('postgres', callerOf({ mode: 'sandbox' }));
  world.spawnWorker();
});
afterAll(() => world.close());

it('a sandbox site called fail_restore goes the whole way there and back, in a world of its own', async () => {
  const siteId = await makeSite(world, 'Shop fail_restore slow');
  await fillSite(world, siteId, 1);
  const backupId = await makeBackup(world, siteId);
  await fillSite(world, siteId, 2);
  const before = await stateOf(world, siteId);
  const answer = await world.api.call('POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: backupId } });
  const view = await ended(world, answer.headers['location']);
  expect(view).toMatchObject({ status: 'failed', error: { code: 'restore_probe_failed' } });
  expect(await stateOf(world, siteId)).toEqual(before);
  const folders = ['live', 'sandbox'].flatMap((mode) => [
    path.join(world.sitesDir, mode, siteId),
    path.join(world.backupsDir, mode, world.caller.orgId, siteId),
  ]);
  expect(folders.map((folder) => existsSync(folder))).toEqual([false, false, true, true]);
});
