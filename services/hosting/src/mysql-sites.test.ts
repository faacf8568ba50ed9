/**
 * Runs the main operations of hosting on a site with MySQL. one-life.test.ts runs them with Postgres.
 *
 * @tier long
 * @processes
 */
import { readdirSync } from 'node:fs';
import path from 'node:path';
import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import { ended, succeed } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { fenceViolations, repetitionViolations } from '@drydock/testing/ledger';
import { serviceBackends } from '@drydock/testing/scope';
import { deletionOf } from '../test/deleted-site';
import { makeBackup, makeSite } from '../test/hosting-world';
import { type OffsiteWorld, openOffsiteWorld, restoreCopy } from '../test/offsite-world';
import { namesIn, stopClock, succeedPlatformWork } from '../test/platform-work';
import { withPrograms } from '../test/site-programs';
import { fillSite, pageOf, runMysql, type SiteState, stateOf } from '../test/site-state';
import { restoreDrillWorkflow } from './proofs/restore-drill.workflow';

withPrograms('a site with MySQL', () => {
  let world: OffsiteWorld;
  let siteId: string;
  let first: SiteState;
  let backupId: string;
  beforeAll(async () => {
    world = await openOffsiteWorld(serviceBackends()[0] ?? 'postgres', callerOf());
    await stopClock(world.api);
    world.spawnWorker();
    siteId = await makeSite(world, 'Shop', 'local', 'mysql');
    await fillSite(world, siteId, 1);
    first = await stateOf(world, siteId);
    backupId = await makeBackup(world, siteId);
  });
  afterAll(() => world.close());

  const run = async (sql: string) => runMysql((await world.placeOf(siteId)).databaseUrl, sql);
  const read = async (): Promise<unknown> => (await world.api.call('GET', `/v1/sites/${siteId}`)).json;
  const backups = async () =>
    ((await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as SiteBackupSurface).backups;

  it('is served, and shown with the requested database', async () => {
    expect(first.page).toBe('200 file=1 row=1');
    expect(await read()).toMatchObject({ status: 'active', platform: 'local', database: 'mysql' });
  });

  it('is restored exactly after it was broken, and its safety copy brings back what was replaced', async () => {
    await fillSite(world, siteId, 2);
    const replaced = await stateOf(world, siteId);
    await succeed(world, 'POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: backupId } });
    expect(await stateOf(world, siteId)).toEqual(first);
    const [copy, ...others] = await backups();
    expect([copy, ...others].map((one) => `${one?.kind} ${one?.status}`)).toEqual([
      'pre_restore completed',
      'on_demand completed',
    ]);
    await succeed(world, 'POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: copy?.id } });
    expect(await stateOf(world, siteId)).toEqual(replaced);
  });

  it('is restored although its tables are gone, and what a restore cannot bring back whole is a finding', async () => {
    await run('CREATE TABLE past (v int) ENGINE = MyISAM; INSERT INTO past VALUES (1)');
    const before = await stateOf(world, siteId);
    const wanted = await makeBackup(world, siteId);
    await run('DROP TABLE past, version');
    expect(await pageOf((await world.host.readSite(siteId)).url)).not.toBe(before.page);
    const answer = await world.api.call('POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: wanted } });
    const view: WorkflowView = await ended(world, answer.headers['location']);
    expect(view).toMatchObject({ status: 'succeeded' });
    expect(view.findings).toMatchObject([
      { level: 'WARNING', code: 'not_transactional', detail: expect.stringContaining('past') },
    ]);
    expect(await stateOf(world, siteId)).toEqual(before);
    await run('DROP TABLE past');
  });

  it('takes its files alone from a backup, and keeps the rows that it has', async () => {
    await fillSite(world, siteId, 3);
    await succeed(world, 'POST', `/v1/sites/${siteId}/backups/restore?contents=files`, {
      body: { backup_id: backupId },
    });
    expect((await stateOf(world, siteId)).page).toBe('200 file=1 row=3');
  });

  it('is restored exactly from the customer’s own storage: from a full copy, and from what an incremental one adds', async () => {
    await world.configure(siteId);
    await fillSite(world, siteId, 1);
    const [full, atFull] = [await world.copy(siteId, 'full'), await stateOf(world, siteId)];
    await fillSite(world, siteId, 2);
    const [added, atAdded] = [await world.copy(siteId, 'incremental'), await stateOf(world, siteId)];
    await fillSite(world, siteId, 4);
    for (const [copyId, state] of [
      [full, atFull],
      [added, atAdded],
    ] as const) {
      expect(await restoreCopy(world, siteId, copyId)).toMatchObject({ status: 'succeeded' });
      expect(await stateOf(world, siteId)).toEqual(state);
    }
    expect(readdirSync(world.spoolDir)).toEqual([]);
  });

  it('passes the drill, on a site with MySQL that is gone afterwards', async () => {
    const before = namesIn(path.join(world.sitesDir, 'live')).sort();
    const workflowId = await succeedPlatformWork(world.api, restoreDrillWorkflow, { passedAgeMinDays: 0 });
    expect(await world.api.rows('SELECT reason FROM proofs WHERE workflow_id = $1', [workflowId])).toEqual([
      { reason: '' },
    ]);
    expect(namesIn(path.join(world.sitesDir, 'live')).sort()).toEqual(before);
    const recorded = await world.api.rows<{ output: { found: { tables: Array<{ schema: string }> } } }>(
      "SELECT output FROM workflow_step WHERE workflow_id = $1 AND name = 'record_sentinels'",
      [workflowId],
    );
    expect(recorded[0]?.output.found.tables.length).toBeGreaterThan(0);
  });

  it('comes back exactly as it was when it was deleted, with MySQL', async () => {
    await fillSite(world, siteId, 2);
    const before = await stateOf(world, siteId);
    await succeed(world, 'DELETE', `/v1/sites/${siteId}`);
    await expect(world.host.readSite(siteId)).rejects.toMatchObject({ code: 'unknown_site' });
    await succeed(world, 'POST', `/v1/sites/deleted/${await deletionOf(world.api, siteId)}/restore`);
    expect(await read()).toMatchObject({ id: siteId, status: 'active', database: 'mysql' });
    expect(await stateOf(world, siteId)).toEqual(before);
    await fillSite(world, siteId, 1);
    await succeed(world, 'POST', `/v1/sites/${siteId}/backups/restore`, { body: { backup_id: backupId } });
    expect((await stateOf(world, siteId)).database).toBe(first.database);
  });

  it('did nothing twice and nothing under an older claim', () => {
    expect([...fenceViolations(world.ledger()), ...repetitionViolations(world.ledger())]).toEqual([]);
  });
});
