/**
 * @tier long
 * @processes
 * @root
 */
import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { linkSync } from 'node:fs';
import { lstat, mkdir, mkdtemp, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import http from 'node:http';
import os from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { exportTar } from '@drydock/archive';
import { isChaos } from '@drydock/testing/scope';
import { SeededRandom, sampleOf } from '@drydock/testing/seeded-random';
import { until } from '@drydock/testing/wait';
import { archiveKey, packSite, stageSite, type TestArchive } from '../../test/archives';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';
import { type HostileTree, hostileTree, treeBuilder, treeRacer } from '../../test/hostile-trees';
import { fillVersion } from '../../test/versions';

/*
 * Generated trees of a hostile customer are packed, staged, served and removed, while code of the site swaps paths in
 * them. The canaries are a folder that only this test's account may read, the files of another site, a folder of the
 * site agent, and a process.
 */

const { seed, count } = sampleOf('hostile trees', { inCi: 12, inChaos: 500 });
/** Several trees share a site, because each backup and each restore of a site starts a process. */
const perSite = isChaos ? 20 : 6;
/** The most trees for one swapping process. With more trees, the process would swap each path too rarely. */
const perRacer = 10;
const batches = Array.from({ length: Math.ceil(count / perSite) }, (_, number) => number);
const isRoot = process.getuid?.() === 0;
const secret = 'a canary of this machine';

let host: TestHost;
let neighbour: FilledSite;
let folder: string;
let bystander: ChildProcess;
let canaries: string[];
beforeAll(async () => {
  host = await startHost(await hostConfig());
  folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-hostile-trees-'));
  neighbour = await host.client.ensureSite(newSiteId(), { domain: 'neighbour.org' }, claim(1));
  canaries = [path.join(folder, 'closed'), neighbour.files_dir, path.join(host.config.SITES_DIR, 'closed')];
  for (const canary of [canaries[0], canaries[2]]) if (canary !== undefined) await mkdir(canary, { mode: 0o700 });
  for (const canary of canaries)
    await writeFile(path.join(canary, 'secret.txt'), secret, { mode: canary === neighbour.files_dir ? 0o644 : 0o600 });
  bystander = spawn(process.execPath, ['-e', 'setInterval(() => undefined, 1000)'], { stdio: 'ignore', env: {} });
});
afterAll(async () => {
  bystander.kill('SIGKILL');
  await clearHost(host, [neighbour.site_id]);
  await rm(folder, { recursive: true, force: true });
});

/** Returns all facts about the canaries that an attack could change, in comparable form. */
async function lookAtCanaries(): Promise<unknown[]> {
  const look = async (canary: string): Promise<unknown> => {
    const file = path.join(canary, 'secret.txt');
    const facts = [await lstat(canary), await lstat(file)].map(({ uid, gid, mode, ino, mtimeMs }) => ({
      uid,
      gid,
      mode,
      ino,
      mtimeMs,
    }));
    return { facts, names: await readdir(canary), text: await readFile(file, 'utf8') };
  };
  return [...(await Promise.all(canaries.map(look))), bystander.exitCode, bystander.signalCode];
}

const accountOf = ({ owner }: FilledSite) => (owner === null ? {} : { uid: owner.uid, gid: owner.gid });

function build(site: FilledSite, { top, steps }: HostileTree, random: SeededRandom): void {
  const built = spawnSync(process.execPath, ['-e', treeBuilder], {
    ...accountOf(site),
    cwd: site.files_dir,
    input: JSON.stringify(steps),
  });
  if (built.status !== 0) throw new Error(built.stderr.toString());
  if (!isRoot) return;
  // Makes what the site's account cannot make: devices, and a second name of a file that the account may not read.
  const inTop = (name: string): string => path.join(site.files_dir, top, name);
  if (random.isChosen(0.3)) spawnSync('mknod', [inTop('zero'), 'c', '1', '5']);
  if (random.isChosen(0.3)) spawnSync('mknod', [inTop('disk'), 'b', '7', '0']);
  if (random.isChosen(0.3)) linkSync(path.join(canaries[0] ?? '', 'secret.txt'), inTop('second-name'));
}

/**
 * The swapping processes get the nice value of jobs, so that they get no more CPU than the work on the site's files.
 */
const niceOfSites = 5;

/**
 * Swaps paths in the folder of `findDir` until the returned function is called, even if the folder is moved. If it is
 * moved before a swapping process has entered it, `findDir` is called again.
 */
async function race(
  site: FilledSite,
  findDir: () => Promise<string>,
  trees: readonly HostileTree[],
): Promise<() => Promise<void>> {
  const racers: ChildProcess[] = [];
  for (let first = 0; first < trees.length; first += perRacer) {
    const races = trees.slice(first, first + perRacer).flatMap((tree) => tree.races);
    if (races.length === 0) continue;
    const racer = await until(
      async () => {
        const started = spawn(process.execPath, ['-e', treeRacer, JSON.stringify(races)], {
          ...accountOf(site),
          cwd: await findDir(),
          stdio: ['pipe', 'pipe', 'inherit'],
        });
        await once(started, 'spawn');
        return started;
      },
      { everyMs: 2, what: 'a racer to start' },
    );
    if (racer.pid !== undefined) os.setPriority(racer.pid, niceOfSites);
    racers.push(racer);
  }
  for (const { stdout } of racers) if (stdout !== null && stdout.readableLength === 0) await once(stdout, 'readable');
  return async () => {
    for (const racer of racers) racer.kill('SIGKILL');
    for (const racer of racers) if (racer.exitCode === null && racer.signalCode === null) await once(racer, 'exit');
  };
}

async function hasSecret({ link }: TestArchive): Promise<boolean> {
  const tar = new PassThrough();
  const search = async (): Promise<boolean> => {
    let isFound = false;
    let end = '';
    for await (const part of tar) {
      const text = end + part.toString('latin1');
      isFound ||= text.includes(secret);
      end = text.slice(-secret.length);
    }
    return isFound;
  };
  const [isFound] = await Promise.all([search(), exportTar({ chain: [link], key: archiveKey }, tar)]);
  return isFound;
}

/** Returns the folder into which a release is or was extracted. */
async function stagingDir(siteId: string, releaseId: string): Promise<string> {
  const releases = path.join(host.config.SITES_DIR, 'live', siteId, 'releases');
  const name = (await readdir(releases)).find((found) => found.startsWith(releaseId));
  if (name === undefined) throw new Error(`nothing of ${releaseId} is in ${releases}`);
  return path.join(releases, name, 'files');
}

const bodyMax = 64 * 1024;

/** Requests the path `name`, whose characters stand for one byte each (latin1). Returns the answer's beginning. */
function ask(site: FilledSite, name: string): Promise<{ status: number; text: string }> {
  const { hostname, port } = new URL(site.url);
  const encoded = [...Buffer.from(name, 'latin1')]
    .map((byte) => (byte === 0x2f ? '/' : `%${byte.toString(16).padStart(2, '0')}`))
    .join('');
  return new Promise((resolve, reject) => {
    const request = http.get({ hostname, port, path: `/${encoded}`, agent: false }, (response) => {
      let text = '';
      const finish = (): void => {
        resolve({ status: response.statusCode ?? 0, text });
        request.destroy();
      };
      response.on('data', (part: Buffer) => {
        text += part.toString('latin1');
        if (text.length > bodyMax) finish();
      });
      response.on('end', finish).on('error', finish);
    });
    request.on('error', reject);
  });
}

const expectEmptyTrash = (): Promise<unknown> =>
  until(async () => (await readdir(path.join(host.config.SITES_DIR, 'trash'))).length === 0, {
    what: 'the trash to be empty',
    // A removal is slow on purpose, so a site's files may take longer than a minute.
    timeoutMs: 600_000,
  });

async function makeSite(trees: readonly HostileTree[], random: SeededRandom): Promise<FilledSite> {
  const site = await host.client.ensureSite(newSiteId(), { domain: 'hostile.org' }, claim(1));
  await fillVersion(site, 1);
  for (const tree of trees) build(site, tree, random);
  // The content child itself looks these names up in a site.
  await symlink(
    random.pick([...canaries, '/', 'nowhere', '.']),
    path.join(site.files_dir, random.pick(['tmp', 'public', '.well-known'])),
  ).catch(() => undefined);
  return site;
}

test.each(batches)(
  `no generated tree reaches beyond its site when it is packed, staged, served and removed (seed ${seed}, site %i)`,
  async (batch) => {
    const random = new SeededRandom(seed + batch);
    const numbers = Array.from({ length: Math.min(perSite, count - batch * perSite) }, (_, at) => batch * perSite + at);
    const trees = numbers.map((number) => hostileTree(seed, number, canaries));
    const before = await lookAtCanaries();
    const site = await makeSite(trees, random);
    const siteId = site.site_id;

    const stopPacking = await race(site, async () => site.files_dir, trees);
    const archive = await packSite(host, siteId, {
      releaseId: 'initial',
      folder: path.join(folder, `packed-${batch}`),
      fence: 2,
    });
    await stopPacking();
    expect(await hasSecret(archive)).toBe(false);
    expect(await lookAtCanaries()).toEqual(before);

    const staging = stageSite(host, siteId, archive, { releaseId: 'copy', fence: 3 });
    const stopStaging = await race(site, () => stagingDir(siteId, 'copy'), trees);
    const outcome = await staging.then(
      () => 'staged',
      (error: unknown) => String(error),
    );
    await stopStaging();
    expect(await lookAtCanaries()).toEqual(before);
    if (outcome !== 'staged') {
      // The swaps removed a part of the release while it was staged. The second stage has no swaps and is complete.
      await stageSite(host, siteId, archive, { releaseId: 'copy', fence: 4 });
    }
    await host.client.switchRelease(siteId, { releaseId: 'copy', expectedRelease: 'initial' }, claim(5));
    await host.client.thawSite(siteId, claim(5));
    const { files_dir: served } = await host.client.placeOfRelease(siteId, 'copy');

    const stopServing = await race(site, async () => served, trees);
    for (const name of trees.flatMap((tree) => tree.asked)) {
      const { status, text } = await ask(site, name);
      expect([name, text.includes(secret)]).toEqual([name, false]);
      expect([200, 301, 302, 308, 403, 404, 405, 500, 503]).toContain(status);
    }
    expect((await ask(site, 'version.txt')).text).toBe('1');
    await stopServing();
    expect(await lookAtCanaries()).toEqual(before);

    const stopRemoving = await Promise.all([
      race(site, async () => served, trees),
      race(site, async () => site.files_dir, trees),
    ]);
    await host.client.destroySite(siteId, claim(6));
    await new Promise((resolve) => setImmediate(resolve));
    await Promise.all(stopRemoving.map((stop) => stop()));
    // A removal that failed because of a swap continues at the next start.
    const { config } = host;
    await host.stop();
    host = await startHost(config);
    await expectEmptyTrash();
    expect(await lookAtCanaries()).toEqual(before);
    await rm(path.join(folder, `packed-${batch}`), { recursive: true, force: true });
    if (isChaos)
      process.stderr.write(
        `site ${batch}: ${trees.length} trees, ${outcome === 'staged' ? 'staged' : 'staged again'}, no harm\n`,
      );
  },
);
