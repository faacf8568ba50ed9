/**
 * Puts Drydock's own database back to earlier moments during all kinds of work.
 *
 * @tier long
 * @processes
 */
import { existsSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import { succeed, workflowIdOf } from '@drydock/service/testing/follow-workflow';
import { putBack, takeMoment } from '@drydock/service/testing/older-database';
import { callerOf } from '@drydock/service/testing/service-api';
import { fenceViolations } from '@drydock/testing/ledger';
import { crashBackends } from '@drydock/testing/scope';
import { SeededRandom, sampleOf } from '@drydock/testing/seeded-random';
import { until } from '@drydock/testing/wait';
import { deletionOf } from '../test/deleted-site';
import { makeBackup, makeSite } from '../test/hosting-world';
import { type OffsiteWorld, openOffsiteWorld } from '../test/offsite-world';
import { fillSite, stateOf } from '../test/site-state';

const { seed, count } = sampleOf('older databases of hosting', { inCi: 2, inChaos: 50 });

interface Work {
  kind: string;
  siteId: string;
  workflowId: string;
  /** The content of the site before and after the work. */
  before: string;
  after: string;
}

/** The end of the work, as recorded in the database that was put back. */
interface End {
  status: string;
  error: string | null;
  steps: string;
}

describe('a database that was put back from a backup', () => {
  let world: OffsiteWorld;
  let sites: { restored: string; offsite: string; deleted: string; packed: string; copied: string };
  const points = new Map<string, { id: string; state: string }>();

  beforeAll(async () => {
    world = await openOffsiteWorld(crashBackends()[0] ?? 'postgres', callerOf());
    hire();
    const filled = async (): Promise<string> => {
      const siteId = await makeSite(world);
      await fillSite(world, siteId, 1);
      return siteId;
    };
    sites = {
      restored: await filled(),
      offsite: await filled(),
      deleted: await filled(),
      packed: await filled(),
      copied: await filled(),
    };
    points.set(sites.restored, { id: await makeBackup(world, sites.restored), state: await see(sites.restored) });
    for (const siteId of [sites.offsite, sites.copied]) await world.configure(siteId);
    points.set(sites.offsite, { id: await world.copy(sites.offsite, 'full'), state: await see(sites.offsite) });
    await succeed(world, 'DELETE', `/v1/sites/${sites.deleted}`);
  });
  afterAll(() => world.close());

  const hire = (): void => {
    for (let number = 0; number < 2; number += 1) world.spawnWorker();
  };
  const see = async (siteId: string): Promise<string> => JSON.stringify(await stateOf(world, siteId));
  const begin = async (target: string, body: object, method: 'POST' | 'DELETE' = 'POST'): Promise<string> => {
    const answer = await world.api.call(method, target, method === 'POST' ? { body } : {});
    if (answer.status !== 202) throw new Error(`${target} answered ${answer.text}`);
    return workflowIdOf(answer);
  };
  const pointOf = (siteId: string) => points.get(siteId) ?? { id: '', state: '' };

  /** Starts six kinds of work at once, each on a site of its own. */
  const beginAll = async (version: number): Promise<Work[]> => {
    const { restored, offsite, deleted, packed, copied } = sites;
    const removed = await makeSite(world);
    await fillSite(world, removed, version);
    for (const siteId of [restored, offsite]) await fillSite(world, siteId, version);
    const [restoredNow, offsiteNow, packedNow] = [await see(restored), await see(offsite), await see(packed)];
    const copiedNow = await see(copied);
    const deletion = await deletionOf(world.api, deleted);
    const [restore, back, revival, backup, copy, removal] = await Promise.all([
      begin(`/v1/sites/${restored}/backups/restore`, { backup_id: pointOf(restored).id }),
      begin(`/v1/sites/${offsite}/offsite/restore`, { copy_id: pointOf(offsite).id }),
      begin(`/v1/sites/deleted/${deletion}/restore`, {}),
      begin(`/v1/sites/${packed}/backups`, {}),
      begin(`/v1/sites/${copied}/offsite/copies`, { kind: version % 2 === 0 ? 'full' : 'incremental' }),
      begin(`/v1/sites/${removed}`, {}, 'DELETE'),
    ]);
    return [
      { kind: 'restore', siteId: restored, workflowId: restore, before: restoredNow, after: pointOf(restored).state },
      { kind: 'offsite', siteId: offsite, workflowId: back, before: offsiteNow, after: pointOf(offsite).state },
      { kind: 'revival', siteId: deleted, workflowId: revival, before: '', after: '' },
      { kind: 'backup', siteId: packed, workflowId: backup, before: packedNow, after: packedNow },
      { kind: 'copy', siteId: copied, workflowId: copy, before: copiedNow, after: copiedNow },
      { kind: 'removal', siteId: removed, workflowId: removal, before: '', after: '' },
    ];
  };

  const stepsDone = async ({ workflowId }: Work): Promise<number> =>
    (await world.api.rows("SELECT FROM workflow_step WHERE workflow_id = $1 AND status = 'succeeded'", [workflowId]))
      .length;
  const isIdle = async ({ siteId, workflowId }: Work): Promise<boolean> =>
    (
      await world.api.rows(
        "SELECT FROM workflow WHERE (id = $1 OR subject_id = $2) AND status IN ('queued', 'running')",
        [workflowId, siteId],
      )
    ).length === 0;
  const over = (works: readonly Work[]): Promise<boolean> =>
    until(async () => (await Promise.all(works.map(isIdle))).every((yes) => yes), {
      timeoutMs: 240_000,
      what: 'the end of all works',
    });
  const endOf = async ({ workflowId }: Work): Promise<End> => {
    const [row] = await world.api.rows<End>(
      `SELECT status, error ->> 'code' AS error, (SELECT string_agg(name || ' ' || status, ', ' ORDER BY position) FROM workflow_step WHERE workflow_id = id) AS steps
       FROM workflow WHERE id = $1`,
      [workflowId],
    );
    return row ?? { status: 'unknown', error: null, steps: '' };
  };

  /**
   * Starts work that the database no longer knows after it was put back: a restore of the safety copy, which gives the
   * site its earlier content again.
   */
  const beginLater = async ({ siteId }: Work): Promise<void> => {
    const surface = (await world.api.call('GET', `/v1/sites/${siteId}/backups`)).json as SiteBackupSurface;
    const copy = surface.backups.find(({ kind, status }) => kind === 'pre_restore' && status === 'completed');
    if (copy !== undefined) await begin(`/v1/sites/${siteId}/backups/restore`, { backup_id: copy.id });
  };

  /** Expects that the storage has exactly the copies that are recorded as complete. */
  const lookAtCopies = async (): Promise<void> => {
    const rows = await world.api.rows<{ object_key: string; status: string }>(
      "SELECT object_key, status FROM offsite_copies WHERE site_id = $1 AND object_key <> ''",
      [sites.copied],
    );
    const whole = rows.filter(({ status }) => status === 'completed').map(({ object_key: key }) => key);
    const kept = world.keys(sites.copied).map((key) => key.replace(/^drydock\//, ''));
    expect(whole.filter((key) => !kept.includes(`${key}/manifest`))).toEqual([]);
    expect(kept.filter((key) => !whole.some((folder) => key.startsWith(`${folder}/`)))).toEqual([]);
  };

  const judge = async (work: Work, hadLater: boolean): Promise<string> => {
    const { status, error, steps } = await endOf(work);
    const told = `${work.kind} ${status} ${error ?? ''} (${steps})`;
    const site = (await world.api.call('GET', `/v1/sites/${work.siteId}`)).json as { status: string | number };
    if (work.kind === 'removal') {
      if (status !== 'succeeded' || site.status !== 404) throw new Error(`${told}: the site is ${site.status}`);
      const deletions = await world.api.rows<{ backup_id: string | null }>(
        'SELECT backup_id FROM deleted_sites WHERE site_id = $1',
        [work.siteId],
      );
      if (deletions.length !== 1 || deletions[0]?.backup_id === null)
        throw new Error(`${told}: nothing to come back from`);
    } else if (work.kind === 'revival') {
      if (status !== 'succeeded' || site.status !== 'active') throw new Error(`${told}: the site is ${site.status}`);
    } else {
      if (site.status !== 'active') throw new Error(`${told}: the site is ${site.status}`);
      const state = await see(work.siteId);
      const { before, after } = work;
      if (state !== before && state !== after) throw new Error(`${told}: the site is neither as before nor as after`);
      if (!hadLater && status !== 'succeeded') throw new Error(told);
      if (status === 'succeeded' && state !== after && !hadLater) throw new Error(`${told}: and the site is as before`);
    }
    return `${work.kind} ${status}${error === null ? '' : ` ${error}`}`;
  };

  it('a removed site whose database is put back to before its removal is removed again, with its last backup', async () => {
    const siteId = await makeSite(world);
    await fillSite(world, siteId, 1);
    const before = await see(siteId);
    await world.endWorkers();
    const workflowId = await begin(`/v1/sites/${siteId}`, {}, 'DELETE');
    const removal = { kind: 'removal', siteId, workflowId, before, after: '' };
    const moment = await takeMoment(world.api.postgres.adminUrl);
    hire();
    await over([removal]);
    await world.endWorkers();
    await putBack(world.api.postgres.adminUrl, moment);
    hire();
    await over([removal]);
    expect(await judge(removal, false)).toBe('removal succeeded');
    await succeed(world, 'POST', `/v1/sites/deleted/${await deletionOf(world.api, siteId)}/restore`);
    expect(await see(siteId)).toBe(before);
  }, 600_000);

  it(
    `ends all of its unfinished work without staff and leaves no site locked, ${count} times`,
    async () => {
      const random = new SeededRandom(seed);
      const ends = new Map<string, number>();
      for (let round = 0; round < count; round += 1) {
        const works = await beginAll(2 + round);
        const shown = random.pick(works);
        const reached = random.below(13);
        await until(async () => (await stepsDone(shown)) >= reached || isIdle(shown), {
          everyMs: 5,
          what: 'the moment',
        });
        await sleep(random.below(100));
        const moment = await takeMoment(world.api.postgres.adminUrl);
        const wayOn = random.pick(['at once', 'soon', 'over', 'over', 'later work', 'later work over'] as const);
        if (wayOn === 'soon') await sleep(random.below(2_000));
        if (wayOn.includes('over') || wayOn.includes('later')) await over(works);
        const [first] = works;
        const hasLater = wayOn.includes('later') && first !== undefined;
        if (hasLater) {
          await beginLater(first);
          if (wayOn === 'later work') await sleep(random.below(1_500));
          else await over([first]);
        }
        await world.endWorkers();
        await putBack(world.api.postgres.adminUrl, moment);
        // The database that was put back has leases of workers that have ended since.
        await world.expireLeases();
        hire();
        await over(works);
        for (const work of works) {
          const end = await judge(work, hasLater && work === first).catch((error: unknown) => {
            throw new Error(
              `round ${round} of seed ${seed}, put back at ${shown.kind} ${reached}, after ${wayOn}: ${String(error)}`,
            );
          });
          ends.set(end, (ends.get(end) ?? 0) + 1);
        }
        expect(
          await world.api.rows("SELECT kind, error_internal FROM workflow WHERE status = 'needs_attention'"),
        ).toEqual([]);
        // Each site must still accept work, and every recorded archive must exist.
        await Promise.all(
          works.filter(({ kind }) => kind !== 'removal').map(({ siteId }) => makeBackup(world, siteId)),
        );
        await lookAtCopies();
        await succeed(world, 'DELETE', `/v1/sites/${sites.deleted}`);
        const backups = await world.api.rows<{ storage_key: string }>(
          "SELECT storage_key FROM backups WHERE status = 'completed'",
        );
        expect(
          backups.filter(({ storage_key: key }) => !existsSync(path.join(world.backupsDir, key, 'manifest'))),
        ).toEqual([]);
        // These backups get another kind, so that they do not use up the allowance for the next round.
        await world.api.rows("UPDATE backups SET kind = 'scheduled' WHERE kind = 'on_demand'");
      }
      expect(fenceViolations(world.ledger())).toEqual([]);
      process.stderr.write(`${[...ends].map(([end, times]) => `${times} × ${end}`).join(', ')}\n`);
    },
    120_000 + count * 600_000,
  );
});
