/**
 * Backs up and restores sites with many files and with large databases.
 *
 * @tier long
 * @processes
 */
import { readdirSync, readFileSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import type { SiteBackupSurface } from '@drydock/contracts/hosting/backups';
import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import { fingerprintDatabase } from '@drydock/postgres';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { callerOf } from '@drydock/service/testing/service-api';
import { isChaos } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { type HostingWorld, makeBackup, makeSite, openWorld } from '../../test/hosting-world';
import { fillSite, pageOf } from '../../test/site-state';
import { buildTree, type PathToMake } from '../../test/trees/build-tree';
import { differences, missingForTrees, readTree } from '../../test/trees/read-tree';

/*
 * A large site is backed up, replaced by an older backup, and restored. The memory must not grow with the site, and in
 * the end paths and database must be the same. Only `npm run chaos` runs all cases, in full size; other runs take the
 * first three at a hundredth of the size. packages/postgres/src/load/large-cases.test.ts tests content that is too
 * large.
 */

const mb = 2 ** 20;
const scale = isChaos ? 1 : 0.01;
jest.setTimeout(isChaos ? 3_600_000 : 600_000);

interface LargeCase {
  what: string;
  paths?: () => PathToMake[];
  statements?: string[];
  /** The most memory, in MB, that a process may use in addition to what it needs for a nearly empty site. */
  growthMaxMb: number;
  /** SQL that digests the content. It is used instead of a fingerprint, which cannot read a value of 1 GB. */
  digestSql?: string;
}

const [files, holeBytes, tables] = [200_000 * scale, Math.round(10 * 2 ** 30 * scale), 50_000 * scale];
const manyFiles = (): PathToMake[] =>
  Array.from({ length: files }, (_, n) => ({
    path: `many/${n % 500}/${n}.txt`,
    type: 'file',
    content: `${n}\n`.repeat(n % 100),
  }));
const sparseFile = (): PathToMake[] => [
  {
    path: 'holes',
    type: 'file',
    sparse: {
      size: holeBytes,
      pieces: [
        [0, 'begin'],
        [Math.floor(holeBytes / 2), 'middle'],
        [holeBytes - 3, 'end'],
      ],
    },
  },
];
const columns = Array.from({ length: 1_600 }, (_, number) => `c${number} smallint`);
/** Commits several times, because a transaction holds a lock for each table that it has made. */
const makeTables = `do $$ begin for n in 1..${tables} loop
  execute format('create table t%s (id bigint primary key, name text not null, at timestamptz default now())', n);
  execute format('insert into t%s values (%s, %L)', n, n, n);
  if n % 500 = 0 then commit; end if; end loop; end $$`;
const makeRows = `create table held as select n, string_agg(md5(n::text || m), '') as filler
  from generate_series(1, ${Math.round(262_144 * scale)}) n cross join generate_series(1, 128) m group by n`;

const cases: LargeCase[] = [
  { what: `${files} files`, paths: manyFiles, growthMaxMb: 100 },
  { what: `a file of ${Math.round(holeBytes / mb)} MB with holes`, paths: sparseFile, growthMaxMb: 100 },
  { what: `${Math.round(1_024 * scale)} MB of rows`, statements: [makeRows], growthMaxMb: 100 },
  {
    what: '1,600 columns',
    statements: [
      `create table wide (${columns.join(', ')})`,
      `insert into wide select ${columns.map((_, n) => n).join(', ')}`,
    ],
    growthMaxMb: 100,
  },
  { what: `${tables} tables`, statements: [makeTables], growthMaxMb: 300 },
  {
    what: `a value of ${1_000 * scale} MB`,
    statements: [
      'create table held (a text)',
      'alter table held alter a set storage external',
      `insert into held values (repeat('x', ${1_000_000_000 * scale}))`,
    ],
    digestSql: 'select md5(a) as digest from held',
    growthMaxMb: 200,
  },
];

let world: HostingWorld;
/** The peak memory of each program in MB, for the same work on a nearly empty site. */
let idleMb: Record<string, number>;
beforeAll(async () => {
  world = await openWorld('postgres', callerOf());
  world.spawnWorker();
  const siteId = await makeSite(world);
  await fillSite(world, siteId, 1);
  const work = async (): Promise<void> => {
    const backupId = await makeBackup(world, siteId);
    await endOf('POST', `/v1/sites/${siteId}/backups/restore`, { backup_id: backupId });
  };
  idleMb = (await watchingMemory(work)).mostMb;
});
afterAll(() => world.close());

/**
 * Runs `work`. `mostMb` has, in MB, the peak memory of each Node program that this process has started, and the growth
 * of this process itself.
 */
async function watchingMemory<T>(work: () => Promise<T>): Promise<{ result: T; mostMb: Record<string, number> }> {
  const before = process.memoryUsage.rss();
  const mostMb: Record<string, number> = {};
  const note = (program: string, megabytes: number): void => {
    mostMb[program] = Math.max(mostMb[program] ?? 0, Math.round(megabytes));
  };
  const timer = setInterval(() => {
    note('growth of this process', (process.memoryUsage.rss() - before) / mb);
    for (const { program, peakMb } of descendants()) note(program, peakMb);
  }, 200);
  try {
    return { result: await work(), mostMb };
  } finally {
    clearInterval(timer);
  }
}

function* descendants(): Generator<{ program: string; peakMb: number }> {
  const parents = new Map<number, number>();
  const found = new Map<number, { program: string; peakMb: number }>();
  for (const pid of readdirSync('/proc').map(Number).filter(Number.isInteger)) {
    try {
      const [status, command] = [
        readFileSync(`/proc/${pid}/status`, 'utf8'),
        readFileSync(`/proc/${pid}/cmdline`, 'utf8'),
      ];
      const field = (name: string): number => Number(new RegExp(`^${name}:\\s*(\\d+)`, 'm').exec(status)?.[1] ?? 0);
      parents.set(pid, field('PPid'));
      const script = command.split('\0').find((argument) => /\.[cm]?[jt]s$/.test(argument));
      if (script !== undefined) found.set(pid, { program: path.basename(script), peakMb: field('VmHWM') / 1024 });
    } catch {
      // The process ended after `/proc` was listed.
    }
  }
  const isOurs = (pid: number): boolean => {
    const parent = parents.get(pid) ?? 0;
    return parent === process.pid || (parent > 1 && isOurs(parent));
  };
  for (const [pid, facts] of found) if (isOurs(pid)) yield facts;
}

/** Waits until a workflow has ended or waits for staff. */
async function endOf(method: string, target: string, body: object): Promise<WorkflowView> {
  const accepted = await world.api.call(method, target, { body });
  expect(accepted).toMatchObject({ status: 202 });
  return until(
    async () => {
      const view = (await world.api.call('GET', String(accepted.headers['location']))).json as WorkflowView;
      return ['succeeded', 'failed', 'needs_attention'].includes(view.status) && view;
    },
    { timeoutMs: 3_000_000, everyMs: 200, what: `the end of ${target}` },
  );
}

async function stateOf(siteId: string, digestSql: string | undefined) {
  const { filesDir, databaseUrl: url } = await world.placeOf(siteId);
  const tree = readTree(realpathSync(filesDir));
  if (digestSql === undefined) return { tree, database: (await fingerprintDatabase({ url })).digest };
  return { tree, database: JSON.stringify(await runSql(url, digestSql)) };
}

const suite = missingForTrees() === '' ? describe : describe.skip;
suite('a site with', () => {
  it.each(isChaos ? cases : cases.slice(0, 3))(
    '$what goes through a backup and its restore',
    async ({ what, paths = () => [], statements = [], growthMaxMb, digestSql }) => {
      const siteId = await makeSite(world);
      await fillSite(world, siteId, 1);
      const older = await makeBackup(world, siteId);
      const { filesDir, databaseUrl } = await world.placeOf(siteId);
      const directory = realpathSync(filesDir);
      buildTree(directory, paths(), statSync(directory));
      for (const statement of statements) await runSql(databaseUrl, statement);
      const before = await stateOf(siteId, digestSql);

      const backups = `/v1/sites/${siteId}/backups`;
      const seconds: number[] = [];
      const timed = async (work: () => Promise<WorkflowView>): Promise<void> => {
        const started = performance.now();
        expect(await work()).toMatchObject({ status: 'succeeded', findings: [] });
        seconds.push(Math.round((performance.now() - started) / 1_000));
      };
      const { mostMb } = await watchingMemory(async () => {
        await timed(() => endOf('POST', backups, {}));
        const [large] = ((await world.api.call('GET', backups)).json as SiteBackupSurface).backups;
        await timed(() => endOf('POST', `${backups}/restore`, { backup_id: older }));
        await timed(() => endOf('POST', `${backups}/restore`, { backup_id: large?.id }));
      });
      process.stderr.write(
        `${what}: backup, replacement and restore took ${seconds.join(', ')} s, MB at most: ${JSON.stringify(mostMb)}\n`,
      );
      const after = await stateOf(siteId, digestSql);
      expect(differences(before.tree, after.tree)).toEqual([]);
      expect(after.database).toBe(before.database);
      expect(await pageOf((await world.host.readSite(siteId)).url)).toBe('200 file=1 row=1');
      const grown = Object.entries(mostMb).filter(([program, most]) => most - (idleMb[program] ?? 0) > growthMaxMb);
      expect(grown).toEqual([]);
      expect(await endOf('DELETE', `/v1/sites/${siteId}?last_backup=none`, {})).toMatchObject({ status: 'succeeded' });
    },
  );
});
