import { execFileSync } from 'node:child_process';
import { mkdirSync, rmSync } from 'node:fs';
import path from 'node:path';
import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { uuidv7 } from 'uuidv7';
import { type HostingWorld, makeSite, openWorld } from '../../test/hosting-world';
import { fillSite } from '../../test/site-state';

let world: HostingWorld;
beforeAll(async () => {
  world = await openWorld('postgres', callerOf());
  world.spawnWorker();
});
afterAll(() => world.close());

const bindSocket = 'socket(S, AF_UNIX, SOCK_STREAM, 0) && bind(S, sockaddr_un($ARGV[0])) or die';
/** Its path is too long for the call unless the folder is entered first. */
const socket = (file: string) => execFileSync('perl', ['-MSocket', '-e', bindSocket, path.basename(file)], { cwd: path.dirname(file) });

it('a backup tells what it does not hold: itself, page by page, in the preflight and on the workflow', async () => {
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const { filesDir } = await world.placeOf(siteId);
  mkdirSync(path.join(filesDir, 'sockets'));
  for (let number = 10; number < 22; number += 1) socket(path.join(filesDir, 'sockets', String(number)));
  rmSync(path.join(filesDir, 'index.html'));
  socket(path.join(filesDir, 'index.html'));
  const accepted = await world.api.call('POST', `/v1/sites/${siteId}/backups`, { body: {} });
  const view = await ended(world, accepted.headers['location']);
  const findings = [
    { level: 'ERROR', code: 'front_page_skipped' },
    { level: 'WARNING', code: 'paths_skipped' },
  ];
  expect(view).toMatchObject({ status: 'succeeded', findings });
  const [backup] = ((await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as SiteBackupSurface).backups;
  expect(backup).toMatchObject({ restorable: true, includes: { files: false, database: true }, skipped: { count: 13 } });
  expect(backup?.skipped.sample).toHaveLength(10);
  expect(backup?.skipped.sample[0]).toEqual({ path: 'index.html', reason: 'a socket or a device' });
  const list = `/v1/sites/${siteId}/backups/${backup?.id}/skipped`;
  const first = (await world.api.call('GET', `${list}?limit=8`)).json as { data: { path: string }[]; page: { next_cursor: string } };
  const second = (await world.api.call('GET', `${list}?cursor=${first.page.next_cursor}`)).json as { data: { path: string }[] };
  const expected = ['index.html', ...Array.from({ length: 12 }, (_, at) => `sockets/${at + 10}`)];
  expect([...first.data, ...second.data].map((skipped) => skipped.path)).toEqual(expected);
  const preflight = await world.api.call('POST', `/v1/sites/${siteId}/backups/restore/preflight`, { body: { backup_id: backup?.id } });
  expect((preflight.json as Preflight).findings).toMatchObject(findings);
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
  for (const target of [`/v1/sites/${other}/backups/${backups[0]?.id}/skipped`, `/v1/sites/${siteId}/backups/${uuidv7()}/skipped`])
    expect(await world.api.call('GET', target)).toMatchObject({ status: 404, json: { code: 'site_backup_not_found' } });
});
