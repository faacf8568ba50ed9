/**
 * Restores chains of copies. one-life.test.ts restores a single copy.
 *
 * @tier long
 * @processes
 */
import { readdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { completeLimits, openArchive, piecesOf } from '@drydock/archive';
import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import type { Preflight } from '@drydock/contracts/platform/preflight';
import { ended } from '@drydock/service/testing/follow-workflow';
import { callerOf } from '@drydock/service/testing/service-api';
import { serviceBackends } from '@drydock/testing/scope';
import { makeSite } from '../../test/hosting-world';
import { bucket, type OffsiteWorld, openOffsiteWorld, restoreCopy } from '../../test/offsite-world';
import { fillSite, makeSocket, runSql, stateOf } from '../../test/site-state';

describe.each(serviceBackends())('copies in the customer’s own storage, with the queue on %s', (backend) => {
  let world: OffsiteWorld;
  beforeAll(async () => {
    world = await openOffsiteWorld(backend, callerOf());
    world.spawnWorker();
  });
  afterAll(() => world.close());

  /** Changes one file and one row. */
  const touch = async (siteId: string, version: number): Promise<void> => {
    const { filesDir, databaseUrl } = await world.placeOf(siteId);
    writeFileSync(path.join(filesDir, 'index.html'), `file=${version} row=<?sql select v from version ?>`);
    await runSql(databaseUrl, `UPDATE version SET v = ${version}`);
  };

  it('gives back exactly the tree and the database of any copy of a chain, and keeps what it replaced', async () => {
    const siteId = await makeSite(world);
    await world.configure(siteId);
    const states = [];
    const copies = [];
    for (const [at, kind] of (['full', 'incremental', 'incremental'] as const).entries()) {
      await (at === 0 ? fillSite(world, siteId, 1) : touch(siteId, at + 1));
      states.push(await stateOf(world, siteId));
      copies.push(await world.copy(siteId, kind));
    }
    const [full, second, third] = copies;
    const state = await world.stateOf(siteId);
    expect(state).toMatchObject({
      configured: true,
      in_progress: false,
      last_error_code: '',
      last_copy_at: expect.any(String),
      restore: null,
    });
    expect(state.copies).toMatchObject([
      {
        id: third,
        kind: 'incremental',
        base_id: full,
        depends_on: [full, second],
        status: 'completed',
        verified_at: expect.any(String),
      },
      { id: second, kind: 'incremental', base_id: full, depends_on: [full], status: 'completed' },
      { id: full, kind: 'full', base_id: null, depends_on: [], status: 'completed' },
    ]);
    await fillSite(world, siteId, 9);
    for (const at of [1, 2, 0]) {
      const view = await restoreCopy(world, siteId, copies[at] ?? '');
      expect(view).toMatchObject({ status: 'succeeded' });
      expect(await stateOf(world, siteId)).toEqual(states[at]);
    }
    const { backups } = (await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as SiteBackupSurface;
    expect(backups.map(({ kind, status }) => `${kind} ${status}`)).toEqual(Array(3).fill('pre_restore completed'));
    expect((await world.stateOf(siteId)).restore).toMatchObject({
      copy_id: full,
      phase: 'done',
      progress: 100,
      error_code: '',
    });
    expect(readdirSync(world.spoolDir)).toEqual([]);
  });

  it('brings back a copy of a site that failed when it was taken, by the record of the increment itself', async () => {
    const siteId = await makeSite(world);
    await world.configure(siteId);
    await fillSite(world, siteId, 1);
    await world.copy(siteId, 'full');
    await runSql((await world.placeOf(siteId)).databaseUrl, 'DROP TABLE version');
    const broken = await stateOf(world, siteId);
    const copyId = await world.copy(siteId, 'incremental');
    await fillSite(world, siteId, 2);
    expect(await restoreCopy(world, siteId, copyId)).toMatchObject({ status: 'succeeded' });
    expect(await stateOf(world, siteId)).toEqual(broken);
    const recorded = await world.api.rows(
      'SELECT kind, http_status, sql_works FROM offsite_copies WHERE site_id = $1 ORDER BY id',
      [siteId],
    );
    expect(recorded).toEqual([
      { kind: 'full', http_status: 200, sql_works: true },
      { kind: 'incremental', http_status: 500, sql_works: true },
    ]);
  });

  it('the workflow and the preflight of a copy, also of an increment, tell which paths it lacks', async () => {
    const siteId = await makeSite(world);
    await world.configure(siteId);
    const { filesDir } = await world.placeOf(siteId);
    makeSocket(path.join(filesDir, 'socket'));
    const findings = [
      { level: 'WARNING', code: 'paths_skipped', detail: expect.stringContaining('socket (a socket or a device)') },
    ];
    for (const kind of ['full', 'incremental']) {
      const accepted = await world.api.call('POST', `/v1/sites/${siteId}/offsite/copies`, { body: { kind } });
      expect(await ended(world, accepted.headers['location'])).toMatchObject({ status: 'succeeded', findings });
    }
    for (const { id } of (await world.stateOf(siteId)).copies) {
      const preflight = await world.api.call('POST', `/v1/sites/${siteId}/offsite/restore/preflight`, {
        body: { copy_id: id },
      });
      expect(preflight.json).toMatchObject({
        refusal: null,
        point: { id },
        findings: [...findings, { code: 'answer_on_record' }, { code: 'files_may_do' }],
      });
    }
  });

  /** Removes the segments of a copy's streams, such as its dump, from the bucket. Resolves with their number. */
  const loseStreams = async (siteId: string, copyId: string): Promise<number> => {
    const [row] = await world.api.rows<{ org_id: string; object_key: string; manifest_mac: string }>(
      'SELECT org_id, object_key, manifest_mac FROM offsite_copies WHERE id = $1',
      [copyId],
    );
    if (row === undefined) throw new Error('no such copy');
    const folder = `drydock/${row.object_key}`;
    const source = { read: async (name: string) => world.readObject(`${folder}/${name}`) };
    const expected = { archiveId: copyId, siteId, orgId: row.org_id, manifestMac: row.manifest_mac };
    const archive = await openArchive({ source, expected }, world.archiveKey, completeLimits());
    const ofStreams = new Set<string>();
    for await (const { name } of piecesOf(archive)) ofStreams.add(name);
    for await (const { name } of piecesOf(archive, { isSuperseded: true })) ofStreams.delete(name);
    const store = world.s3.world.buckets.get(bucket);
    for (const name of ofStreams) for (const version of store.versionsOf(`${folder}/${name}`)) store.remove(version);
    return ofStreams.size;
  };

  it('reads no dump of an older copy, and does not miss one', async () => {
    const siteId = await makeSite(world);
    await world.configure(siteId);
    await fillSite(world, siteId, 1);
    const full = await world.copy(siteId, 'full');
    await touch(siteId, 2);
    const newest = await world.copy(siteId, 'incremental');
    const wanted = await stateOf(world, siteId);
    const verifiedBefore = (await world.stateOf(siteId)).copies.find(({ id }) => id === full)?.verified_at;
    expect(await loseStreams(siteId, full)).toBeGreaterThan(0);
    await fillSite(world, siteId, 9);
    expect(await restoreCopy(world, siteId, newest)).toMatchObject({ status: 'succeeded' });
    expect(await stateOf(world, siteId)).toEqual(wanted);
    // The full copy was not read as a whole, so it does not count as verified again. A restore of the full copy fails,
    // because its dump is gone.
    expect((await world.stateOf(siteId)).copies.find(({ id }) => id === full)?.verified_at).toBe(verifiedBefore);
    expect(await restoreCopy(world, siteId, full)).toMatchObject({ status: 'failed', error: { code: 'copy_missing' } });
  });

  it('a chain needs room for the database once, however many copies hold it, and not for what old records add up to', async () => {
    const siteId = await makeSite(world);
    await world.configure(siteId);
    await fillSite(world, siteId, 1);
    const { databaseUrl } = await world.placeOf(siteId);
    await runSql(
      databaseUrl,
      `CREATE TABLE large AS SELECT n, repeat(md5(n::text), 32) AS text FROM generate_series(1, 8192) n`,
    );
    const neededBytes = async (copyId: string): Promise<number> => {
      const body = { copy_id: copyId };
      const preflight = await world.api.call('POST', `/v1/sites/${siteId}/offsite/restore/preflight`, { body });
      return (preflight.json as Preflight).space?.needed_bytes ?? 0;
    };
    const full = await neededBytes(await world.copy(siteId, 'full'));
    let newest = '';
    for (const version of [2, 3, 4, 5]) {
      await touch(siteId, version);
      newest = await world.copy(siteId, 'incremental');
    }
    const wanted = await stateOf(world, siteId);
    // The table is 8 MiB, and each of the five copies holds it.
    expect((await neededBytes(newest)) - full).toBeLessThan(2 ** 20);
    // Without a record of their streams, as in copies of an earlier version, the manifests tell whether the chain fits.
    await world.api.rows(
      'UPDATE offsite_copies SET stream_bytes = NULL, raw_bytes = 1::bigint << 50 WHERE site_id = $1 AND id <> $2',
      [siteId, newest],
    );
    await fillSite(world, siteId, 9);
    expect(await restoreCopy(world, siteId, newest)).toMatchObject({ status: 'succeeded' });
    expect(await stateOf(world, siteId)).toEqual(wanted);
  });

  it('answers 202 with the workflow and the state, and where to follow it', async () => {
    const siteId = await makeSite(world);
    await world.configure(siteId);
    const copyId = await world.copy(siteId, 'full');
    const answer = await world.api.call('POST', `/v1/sites/${siteId}/offsite/restore`, { body: { copy_id: copyId } });
    const { workflow_id: workflowId, state } = answer.json as { workflow_id: string; state: object };
    expect([answer.status, answer.headers['location']]).toEqual([202, `/v1/sites/${siteId}/workflows/${workflowId}`]);
    expect(state).toMatchObject({
      in_progress: true,
      restore: { workflow_id: workflowId, copy_id: copyId, phase: 'queued', progress: 0 },
    });
    // The list of backups shows a restore from a copy too, so that a client that polls the list waits for the restore.
    expect((await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json).toMatchObject({
      in_progress: true,
      can_backup: false,
    });
    const second = await world.api.call('POST', `/v1/sites/${siteId}/offsite/restore`, { body: { copy_id: copyId } });
    expect([second.status, second.json]).toMatchObject([
      422,
      { code: 'operation_in_progress', workflow_id: workflowId },
    ]);
    expect(await ended(world, answer.headers['location'])).toMatchObject({ status: 'succeeded' });
  });
});
