/** @processes */
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { DeletedSiteView } from '@drydock/contracts/hosting/deleted-sites';
import { auditedOf } from '@drydock/service/testing/audit-log';
import { callerOf } from '@drydock/service/testing/service-api';
import { until } from '@drydock/testing/wait';
import { type GivenDeletion, givenDeletedSite } from '../../test/deleted-site';
import { givenBackup } from '../../test/hosting-api';
import { type HostingWorld, openWorld } from '../../test/hosting-world';
import { type HostingDatabase, openDatabase } from '../context/database.store';
import { type StaffActions, staffActions } from './staff-actions';

const owner = callerOf();
const customer = { ...owner, scopes: owner.scopes.filter((scope) => scope !== 'platform.staff') };
let world: HostingWorld;
let database: HostingDatabase;
let staff: StaffActions;
beforeAll(async () => {
  world = await openWorld('postgres', owner);
  database = openDatabase(world.api.postgres.url, { max: 2, applicationName: 'test' });
  staff = staffActions(database);
  world.spawnWorker();
});
afterAll(async () => {
  await database.close();
  await world.close();
});

const given = (change: GivenDeletion) => givenDeletedSite(world.api, world.backupsDir, owner, change);
const read = async (id: string, caller = owner) =>
  (await world.api.call('GET', `/v1/sites/deleted/${id}`, { caller })).json as DeletedSiteView;
const hasArchive = (siteId: string): boolean => {
  const folder = path.join(world.backupsDir, 'live', siteId);
  return (
    existsSync(folder) &&
    readdirSync(folder, { recursive: true, encoding: 'utf8' }).some((name) => name.endsWith('manifest'))
  );
};
const isRemoved = async (id: string): Promise<boolean> =>
  (await world.api.rows('SELECT 1 FROM deleted_sites WHERE id = $1 AND data_removed_at IS NOT NULL', [id])).length > 0;
/** Makes the schedules due, as if an hour had passed. */
const runSchedules = () =>
  world.api.rows("UPDATE workflow_schedule SET next_run_at = now() WHERE kind = 'purge_deleted_sites'");

it('the clock purges what is past its window, and nothing else', async () => {
  const scheduled = "SELECT 1 FROM workflow_schedule WHERE kind = 'purge_deleted_sites'";
  await until(async () => (await world.api.rows(scheduled)).length === 2, {
    timeoutMs: 30_000,
    what: 'a schedule in each world',
  });
  const [due, held, empty] = [
    await given({ daysAgo: 31 }),
    await given({ daysAgo: 31, reason: 'abuse' }),
    await given({ daysAgo: 31, hasBackup: false }),
  ];
  const [young, restored] = [await given({ daysAgo: 29 }), await given({ daysAgo: 31, restored: true })];
  await runSchedules();
  for (const { id } of [due, held, empty]) await until(() => isRemoved(id), { timeoutMs: 30_000, what: 'the purge' });
  expect(await read(due.id)).toMatchObject({ purged_at: expect.any(String), restorable: false, reason_code: 'purged' });
  const archived = await world.api.rows('SELECT status FROM backups WHERE site_id = $1', [due.siteId]);
  expect(archived).toEqual([{ status: 'expired' }]);
  for (const { id } of [young, restored]) expect(await read(id)).toMatchObject({ purged_at: null });
  const left = await world.api.rows('SELECT status FROM backups WHERE site_id = $1', [young.siteId]);
  expect([left, hasArchive(young.siteId), hasArchive(due.siteId)]).toEqual([[{ status: 'completed' }], true, false]);
});

it('goes on where a purge has marked a record and then died', async () => {
  const record = await given({ purged: true });
  await runSchedules();
  await until(() => isRemoved(record.id), { timeoutMs: 30_000 });
  expect(hasArchive(record.siteId)).toBe(false);
});

it('also removes what a failed backup of the site has left, before the record tells that all is removed', async () => {
  const { id, siteId } = await given({ daysAgo: 40 });
  const failed = await givenBackup(world.api, owner, siteId, { status: 'failed' });
  const left = path.join(world.backupsDir, 'live', owner.orgId, siteId, failed, '1');
  mkdirSync(left, { recursive: true });
  writeFileSync(path.join(left, 'segment-00000000'), 'half of a site');
  await runSchedules();
  await until(() => isRemoved(id), { timeoutMs: 30_000 });
  expect(existsSync(left)).toBe(false);
});

it('a record whose data cannot be removed does not hold up the others', async () => {
  const [bad, good] = [await given({ daysAgo: 40 }), await given({ daysAgo: 40 })];
  await world.api.rows("UPDATE backups SET storage_key = 'live/x' WHERE site_id = $1", [bad.siteId]);
  await runSchedules();
  await until(() => isRemoved(good.id), { timeoutMs: 30_000 });
  // The data is still there, so `purged_at` is null, although the site cannot be restored any more.
  expect(await read(bad.id)).toMatchObject({ restorable: false, reason_code: 'purged', purged_at: null });
  expect(await isRemoved(bad.id)).toBe(false);
});

it('staff hold a record for abuse, release it, and have it purged before its time, each noted', async () => {
  const { id, siteId } = await given({});
  await staff.hold(id);
  expect(await read(id, customer)).toMatchObject({ reason: 'abuse', restorable: false, reason_code: 'abuse_hold' });
  await staff.release(id);
  expect(await read(id, customer)).toMatchObject({ restorable: true });
  await staff.purge(id);
  await until(() => isRemoved(id), { timeoutMs: 30_000 });
  expect(await read(id)).toMatchObject({ reason_code: 'purged' });
  expect(hasArchive(siteId)).toBe(false);
  await expect(staff.hold(id)).rejects.toThrow('no deleted site');
  await expect(staff.purge(id)).rejects.toThrow('no deleted site');
  const audited = await auditedOf(world.api, `/v1/sites/deleted/${id}`);
  expect(audited).toEqual(['deleted_site.hold', 'deleted_site.release', 'deleted_site.purge']);
});
