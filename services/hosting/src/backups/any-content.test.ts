/**
 * Restores sites with generated content.
 *
 * @tier long
 * @processes
 */
import { realpathSync, statSync } from 'node:fs';
import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import type { ServiceAnswer } from '@drydock/service/testing/call-service';
import { callerOf } from '@drydock/service/testing/service-api';
import { isChaos } from '@drydock/testing/scope';
import { SeededRandom, sampleOf } from '@drydock/testing/seeded-random';
import { until } from '@drydock/testing/wait';
import fc from 'fast-check';
import { uuidv7 } from 'uuidv7';
import { type HostingWorld, openWorld } from '../../test/hosting-world';
import { fillSite, pageOf, runSql } from '../../test/site-state';
import { buildTree } from '../../test/trees/build-tree';
import { generatedTrees } from '../../test/trees/generated-tree';
import { oddSql } from '../../test/trees/odd-sql';
import { missingForTrees } from '../../test/trees/read-tree';

/*
 * Sites with generated content are restored from an older backup. No restore may wait for staff, and each must leave
 * the content of the backup or the content from before the restore.
 */

const { seed, count } = sampleOf('sites of any content', { inCi: 5, inChaos: 1_000 });
const atOnce = 4;
/**
 * How many times a site is restored. Making a site and its first backup takes as long as a restore, so chaos runs use a
 * site again once it is back in its first state.
 */
const roundsMax = isChaos ? 20 : 1;
const missing = missingForTrees();
jest.setTimeout(7_200_000);

let world: HostingWorld;
beforeAll(async () => {
  world = await openWorld('postgres', callerOf());
  world.spawnWorker();
});
afterAll(() => world.close());

/** Repeats a call while its answer is 503, because the API of a busy machine may not reach its database in time. */
const call = (method: string, target: string, body?: object): Promise<ServiceAnswer> =>
  until(
    async () => {
      const answer = await world.api.call(method, target, body === undefined ? {} : { body });
      return answer.status === 503 ? false : answer;
    },
    { timeoutMs: 90_000, what: `an answer to ${method} ${target}` },
  );

/** Waits until a workflow has ended or waits for staff. */
const endOf = async ({ headers }: ServiceAnswer): Promise<WorkflowView> =>
  until(
    async () => {
      const view = (await call('GET', String(headers['location']))).json as WorkflowView;
      return ['succeeded', 'failed', 'needs_attention'].includes(view.status) && view;
    },
    { timeoutMs: 600_000, everyMs: 200, what: `the end of ${String(headers['location'])}` },
  );

/** Adds random files and database objects to a site. Resolves with the SQL that succeeded. */
async function spoil(siteId: string, number: number): Promise<string[]> {
  const random = new SeededRandom(seed + number);
  const { filesDir, databaseUrl } = await world.placeOf(siteId);
  const directory = realpathSync(filesDir);
  const { uid, gid } = statSync(directory);
  if (missing === '') {
    const [paths = []] = fc.sample(generatedTrees(1), { numRuns: 1, seed: seed + number });
    buildTree(directory, paths, { uid, gid });
    if (random.isChosen(0.3))
      buildTree(
        directory,
        [
          { path: 'odd/pipe', type: 'fifo' },
          { path: 'odd/socket', type: 'socket' },
        ],
        null,
      );
    if (random.isChosen(0.2)) buildTree(directory, [{ path: `odd/${'deep/'.repeat(400)}end`, type: 'file' }], null);
  }
  const done: string[] = [];
  for (const sql of random.pickSome(oddSql, 1 + random.below(8))) {
    await runSql(databaseUrl, sql).then(
      () => done.push(sql),
      () => undefined,
    );
  }
  return done;
}

interface Ended {
  number: number;
  view: WorkflowView;
  /** A description of the site after the restore if anything is wrong; '' if all is right. */
  wrong: string;
  done: string[];
}

interface MadeSite {
  siteId: string;
  /** The first backup, before any change. */
  backupId: string | undefined;
}

async function makeSite(): Promise<MadeSite> {
  const made = await call('POST', '/v1/sites', { name: 'Shop', primary_domain: `${uuidv7()}.example.com` });
  const { id: siteId } = made.json as { id: string };
  expect((await endOf(made)).status).toBe('succeeded');
  await fillSite(world, siteId, 1);
  const packed = await call('POST', `/v1/sites/${siteId}/backups`, {});
  expect((await endOf(packed)).status).toBe('succeeded');
  return { siteId, backupId: (packed.json as SiteBackupSurface).backups[0]?.id };
}

async function restoreSpoilt({ siteId, backupId }: MadeSite, number: number): Promise<Ended> {
  await fillSite(world, siteId, 2);
  const done = await spoil(siteId, number);
  const { current_release: before } = await world.host.readSite(siteId);
  const view = await endOf(await call('POST', `/v1/sites/${siteId}/backups/restore`, { backup_id: backupId }));
  const { current_release: after, frozen, url } = await world.host.readSite(siteId);
  const { status } = (await call('GET', `/v1/sites/${siteId}`)).json as { status: string };
  const page = await pageOf(url);
  const isWhole = view.status === 'succeeded' ? page === '200 file=1 row=1' : after === before && !frozen;
  const isAllowed =
    view.status === 'succeeded' || (view.status === 'failed' && view.error?.code === 'site_content_refused');
  const facts = [view.status, view.error?.code, status, page, frozen].join(', ');
  return { number, view, wrong: isWhole && isAllowed && status === 'active' ? '' : facts, done };
}

const removeSite = async ({ siteId }: MadeSite): Promise<unknown> =>
  endOf(await call('DELETE', `/v1/sites/${siteId}?last_backup=none`));

function tell(results: readonly Ended[], started: number): void {
  const ends = new Map<string, number>();
  for (const { view } of results) {
    const end = view.error?.code ?? view.status;
    ends.set(end, (ends.get(end) ?? 0) + 1);
  }
  const wrong = results.filter((result) => result.wrong !== '').map((result) => `${result.number}: ${result.wrong}`);
  process.stderr.write(
    `${results.length} sites in ${((performance.now() - started) / 1000).toFixed(0)} s: ${JSON.stringify(Object.fromEntries(ends))} ${wrong.join('; ')}\n`,
  );
}

it(`a site of any content is restored or refused, and none waits for staff (${count} sites, DRYDOCK_SEED=${seed})${missing === '' ? '' : `, with its database alone${missing}`}`, async () => {
  const started = performance.now();
  const results: Ended[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    let site: MadeSite | null = null;
    for (let number = next++, round = 1; number < count; number = next++, round += 1) {
      site ??= await makeSite();
      const ended = await restoreSpoilt(site, number);
      results.push(ended);
      if (isChaos && results.length % 20 === 0) tell(results, started);
      // A restored site is used up to `roundsMax` times. A site whose content was refused is deleted at once.
      if (ended.wrong === '' && ended.view.status === 'succeeded' && round % roundsMax !== 0) continue;
      if (ended.wrong === '') await removeSite(site);
      site = null;
    }
    if (site !== null) await removeSite(site);
  };
  await Promise.all(Array.from({ length: atOnce }, lane));
  tell(results, started);
  expect(results).toHaveLength(count);
  expect(
    results
      .filter(({ wrong }) => wrong !== '')
      .map(({ number, wrong, view, done }) => ({ number, wrong, error: view.error, done })),
  ).toEqual([]);
});
