/**
 * Backs up and restores paths that a backup does not keep completely.
 *
 * @tier long
 * @processes
 */
import { execFileSync, spawnSync } from 'node:child_process';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { directoryRoot, pack, streamRoot } from '@drydock/archive';
import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { dumpDatabase } from '@drydock/postgres';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { type HostingWorld, makeBackup, makeSite, openWorld } from '../../test/hosting-world';
import { fillSite, makeSocket } from '../../test/site-state';
import { missingForTrees } from '../../test/trees/read-tree';
import { localBackupStorage } from '../providers/backup-storage.local';
import { findingsOfLost } from './skipped.view';

let world: HostingWorld;
beforeAll(async () => {
  world = await openWorld('postgres', callerOf());
  world.spawnWorker();
});
afterAll(() => world.close());

it('a backup, its list page by page, the preflight and the workflow tell which paths it lacks', async () => {
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const { filesDir } = await world.placeOf(siteId);
  mkdirSync(path.join(filesDir, 'sockets'));
  for (let number = 10; number < 22; number += 1) makeSocket(path.join(filesDir, 'sockets', String(number)));
  rmSync(path.join(filesDir, 'index.html'));
  makeSocket(path.join(filesDir, 'index.html'));
  const accepted = await world.api.call('POST', `/v1/sites/${siteId}/backups`, { body: {} });
  const view = await ended(world, accepted.headers['location']);
  const findings = [
    { level: 'ERROR', code: 'front_page_skipped' },
    { level: 'WARNING', code: 'paths_skipped' },
  ];
  expect(view).toMatchObject({ status: 'succeeded', findings });
  const [backup] = ((await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as SiteBackupSurface).backups;
  expect(backup).toMatchObject({
    restorable: true,
    includes: { files: false, database: true },
    skipped: { count: 13 },
  });
  expect(backup?.skipped.sample).toHaveLength(10);
  expect(backup?.skipped.sample[0]).toEqual({ path: 'index.html', reason: 'a socket or a device' });
  const list = `/v1/sites/${siteId}/backups/${backup?.id}/skipped`;
  const first = (await world.api.call('GET', `${list}?limit=8`)).json as {
    data: { path: string }[];
    page: { next_cursor: string };
  };
  const second = (await world.api.call('GET', `${list}?cursor=${first.page.next_cursor}`)).json as {
    data: { path: string }[];
  };
  const expected = ['index.html', ...Array.from({ length: 12 }, (_, at) => `sockets/${at + 10}`)];
  expect([...first.data, ...second.data].map((skipped) => skipped.path)).toEqual(expected);
  const preflight = await world.api.call('POST', `/v1/sites/${siteId}/backups/restore/preflight`, {
    body: { backup_id: backup?.id },
  });
  expect((preflight.json as Preflight).findings).toMatchObject([
    ...findings,
    { code: 'answer_on_record' },
    { code: 'files_may_do' },
  ]);
});

it('a backup holds an absolute link into a release and tells that a restore breaks it; a link through current is not mentioned', async () => {
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const { filesDir } = await world.placeOf(siteId);
  const release = realpathSync(filesDir);
  symlinkSync(path.join(release, 'cache'), path.join(filesDir, 'by-release'));
  symlinkSync(path.join(release, '../../../current/files/cache'), path.join(filesDir, 'by-current'));
  const { backups } = await succeed<SiteBackupSurface>(world, 'POST', `/v1/sites/${siteId}/backups`, { body: {} });
  const backup = (await world.api.call('GET', `/v1/sites/${siteId}/backups/${backups[0]?.id}`)).json;
  const sample = [{ path: 'by-release', reason: expect.stringContaining('leads nowhere after a restore') }];
  expect(backup).toMatchObject({ restorable: true, includes: { files: true }, skipped: { count: 1, sample } });
});

/** An attribute that is too large for ext4, and small enough for a file system in memory. */
const attribute = ['-n', 'user.large', '-v', 'x'.repeat(20_000)];
const takesAttribute = (folder: string): boolean => {
  const file = path.join(folder, `drydock-attribute-${process.pid}`);
  writeFileSync(file, '');
  const { status } = spawnSync('setfattr', [...attribute, file], { stdio: 'ignore' });
  rmSync(file);
  return status === 0;
};
const inMemory = '/dev/shm';

/** The end of the test's title: what this machine lacks for the test, or ''. */
function missingForLoss(): string {
  const missing = missingForTrees();
  if (missing !== '') return missing;
  if (!existsSync(inMemory) || !takesAttribute(inMemory))
    return ` (needs ${inMemory} with extended attributes of 20 kB)`;
  return takesAttribute(tmpdir()) ? ` (needs a ${tmpdir()} without extended attributes of 20 kB)` : '';
}

/** Replaces a backup's archive by an archive of `folder`. */
async function replaceArchive(siteId: string, backupId: string, folder: string): Promise<void> {
  const [row] = await world.api.rows<{ storage_key: string; sequence: string }>(
    'SELECT storage_key, sequence FROM backups WHERE id = $1',
    [backupId],
  );
  const storageKey = `${row?.storage_key}-other`;
  const { databaseUrl } = await world.placeOf(siteId);
  const packed = await pack({
    roots: [directoryRoot('files', folder), streamRoot('database', dumpDatabase({ url: databaseUrl }))],
    sink: localBackupStorage(world.backupsDir).sink(storageKey),
    key: world.archiveKey,
    identity: { archiveId: backupId, siteId, orgId: world.caller.orgId, sequence: Number(row?.sequence) },
    createdAt: new Date(),
  });
  await world.api.rows(
    'UPDATE backups SET storage_key = $2, manifest_mac = $3, checksum_sha256 = $4, size_bytes = $5 WHERE id = $1',
    [backupId, storageKey, packed.manifestMac, packed.manifestSha256, packed.sizeBytes],
  );
}

const missing = missingForLoss();
const itWith = missing === '' ? it : it.skip;
itWith(`the restore has a finding that names a path that the host does not restore completely${missing}`, async () => {
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const backupId = await makeBackup(world, siteId);
  const folder = mkdtempSync(path.join(inMemory, 'drydock-'));
  try {
    writeFileSync(path.join(folder, 'index.html'), 'whole');
    writeFileSync(path.join(folder, 'large'), 'content');
    execFileSync('setfattr', [...attribute, path.join(folder, 'large')]);
    await replaceArchive(siteId, backupId, folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
  const accepted = await world.api.call('POST', `/v1/sites/${siteId}/backups/restore`, {
    body: { backup_id: backupId },
  });
  const detail = expect.stringMatching(
    /^The backup holds more than the host could restore: large \(the file system did not take its extended attributes/,
  );
  expect(await ended(world, accepted.headers['location'])).toMatchObject({
    status: 'succeeded',
    findings: [{ level: 'WARNING', code: 'paths_not_restored_whole', detail }],
  });
  expect(readFileSync(path.join((await world.placeOf(siteId)).filesDir, 'large'), 'utf8')).toBe('content');
});

it('the finding names ten of the paths that were not restored whole, and counts the others', () => {
  const paths = Array.from({ length: 12 }, (_, number) => ({ path: `path-${number}`, reason: 'refused' }));
  const [finding] = findingsOfLost({ count: 15, paths });
  expect(finding).toMatchObject({ level: 'WARNING', code: 'paths_not_restored_whole' });
  expect(finding?.detail).toContain('path-0 (refused), path-1 (refused)');
  expect(finding?.detail).toContain('path-9 (refused), and 5 more.');
  expect(findingsOfLost({ count: 0, paths: [] })).toEqual([]);
});

it('a backup that holds everything says so, and shows its list to nobody else', async () => {
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const { backups } = await succeed<SiteBackupSurface>(world, 'POST', `/v1/sites/${siteId}/backups`, { body: {} });
  const listed = ((await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as SiteBackupSurface).backups;
  expect(listed).toMatchObject([{ includes: { files: true, database: true }, skipped: { count: 0, sample: [] } }]);
  const list = `/v1/sites/${siteId}/backups/${backups[0]?.id}/skipped`;
  expect((await world.api.call('GET', list)).json).toMatchObject({ data: [], page: { has_more: false } });
  const others = [callerOf(), { ...world.caller, mode: 'sandbox' as const }];
  for (const caller of others) expect(await world.api.call('GET', list, { caller })).toMatchObject({ status: 404 });
  const other = await makeSite(world);
  for (const target of [
    `/v1/sites/${other}/backups/${backups[0]?.id}/skipped`,
    `/v1/sites/${siteId}/backups/${uuidv7()}/skipped`,
  ])
    expect(await world.api.call('GET', target)).toMatchObject({ status: 404, json: { code: 'site_backup_not_found' } });
});
