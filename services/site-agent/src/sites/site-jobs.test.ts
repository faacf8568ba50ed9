/**
 * @tier long
 * @processes
 * @root long
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, lstat, mkdir, mkdtemp, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { PassThrough } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { exportTar } from '@drydock/archive';
import { runSql } from '@drydock/postgres/testing/run-sql';
import { readSharedCluster } from '@drydock/postgres/testing/test-cluster';
import { isChaos } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { archiveKey, packSite, stageSite, type TestArchive } from '../../test/archives';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';
import { fillVersion, readPage } from '../../test/versions';

const attempts = isChaos ? 200 : 5;
// The time limit allows for two hundred backups or restores, one after the other.
jest.setTimeout(900_000);
const secret = 'the master key of this machine';
const siteId = newSiteId();
let host: TestHost;
let site: FilledSite;
let folder: string;
let fence = 10;
const nextFence = (): number => {
  fence += 1;
  return fence;
};
beforeAll(async () => {
  host = await startHost(await hostConfig());
  folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-site-jobs-'));
  site = await host.client.ensureSite(siteId, { domain: 'a.org' }, claim(1));
  await fillVersion(site, 1);
});
afterAll(async () => {
  await clearHost(host, [siteId]);
  await rm(folder, { recursive: true, force: true });
});

/** Runs a script as the site's account, like a site's code. */
function asSite(script: string, args: string[]): ChildProcess {
  const account = site.owner === null ? {} : { uid: site.owner.uid, gid: site.owner.gid };
  return spawn(process.execPath, ['-e', script, ...args], {
    ...account,
    cwd: '/',
    stdio: ['ignore', 'pipe', 'inherit'],
  });
}

/**
 * Swaps a folder with a link to the canary until `stop` is called. `swaps` returns how often the link was in place.
 * Resolves once the link was in place, or once `isTooLate` returns true.
 */
async function startSwapping(
  target: string,
  canary: string,
  isTooLate = () => false,
): Promise<{ swaps(): number; stop(): Promise<void> }> {
  const child = asSite(swap, [target, canary]);
  const exited = once(child, 'exit');
  let count = 0;
  child.stdout?.on('data', (part: Buffer) => {
    count += part.length;
  });
  await until(() => count > 0 || isTooLate(), { what: 'the first swap' });
  const stop = async (): Promise<void> => {
    child.kill('SIGKILL');
    await exited;
  };
  return { swaps: () => count, stop };
}

/** Repeats `work` until a swap has happened in `attempts` of its runs. */
async function raceOften(work: (attempt: number) => Promise<{ swaps: number }>): Promise<void> {
  let raced = 0;
  for (let attempt = 0; raced < attempts; attempt += 1) {
    if (attempt > 10 * attempts) throw new Error(`of ${attempt} attempts only ${raced} met a swap: nothing was tested`);
    if ((await work(attempt)).swaps > 0) raced += 1;
  }
}

/** Creates a folder that only this process's account may enter, with a file that only this account may read. */
async function makeCanary(name: string): Promise<string> {
  const canary = path.join(folder, name);
  await mkdir(canary, { mode: 0o700 });
  await writeFile(path.join(canary, 'secret.txt'), secret, { mode: 0o600 });
  return canary;
}

/**
 * A script that swaps a folder with a link to the canary under one name, as fast as it can. It prints a byte for each
 * time that the link was in place.
 */
const swap = `
const fs = require('node:fs');
const [folder, canary] = process.argv.slice(1);
for (;;) {
  try { fs.renameSync(folder, folder + '.aside'); } catch {}
  try { fs.symlinkSync(canary, folder); fs.writeSync(1, '.'); } catch {}
  for (let spin = 0; spin < 20000; spin += 1) Math.random();
  try { fs.unlinkSync(folder); } catch {}
  try { fs.renameSync(folder + '.aside', folder); } catch {}
}`;

async function tarOf({ link }: TestArchive): Promise<string> {
  const tar = new PassThrough();
  const [bytes] = await Promise.all([buffer(tar), exportTar({ chain: [link], key: archiveKey }, tar)]);
  return bytes.toString('latin1');
}

const pack = (name: string, releaseId = 'initial'): Promise<TestArchive> =>
  packSite(host, siteId, { releaseId, folder: path.join(folder, name), fence: nextFence() });

test('a release is packed, staged by the site’s account and served, and the login of the load is gone', async () => {
  const archive = await pack('plain');
  await stageSite(host, siteId, archive, { releaseId: 'copy', fence: nextFence() });
  const { files_dir, owner } = await host.client.placeOfRelease(siteId, 'copy');
  const { uid, gid } = await stat(path.join(files_dir, 'index.html'));
  expect(owner === null ? null : { uid, gid }).toEqual(owner);
  const logins = `select r.rolname from pg_roles r join pg_auth_members m on m.member = r.oid join pg_roles o on o.oid = m.roleid
    where r.rolname like 'ld\\_%' and r.rolcanlogin and o.rolname = $1`;
  expect(await runSql(readSharedCluster().adminUrl, logins, [new URL(site.database_url).username])).toEqual([]);
  const move = { releaseId: 'copy', expectedRelease: 'initial' };
  await host.client.switchRelease(siteId, move, claim(nextFence()));
  await host.client.thawSite(siteId, claim(nextFence()));
  expect(await readPage(site.url)).toBe('file=1 row=1');
  await host.client.switchRelease(siteId, { releaseId: 'initial', expectedRelease: 'copy' }, claim(nextFence()));
  await host.client.thawSite(siteId, claim(nextFence()));
});

test("a site's app that swaps a folder for a link during a backup copies nothing of the machine", async () => {
  const canary = await makeCanary('packed');
  const target = path.join(site.files_dir, 'swapped');
  await mkdir(target);
  for (let number = 0; number < 200; number += 1) await writeFile(path.join(target, `${number}.txt`), 'mine');
  await writeFile(path.join(target, 'secret.txt'), 'mine');
  await giveToSite(target);
  const app = await startSwapping(await realFilesDir('swapped'), canary);
  await raceOften(async (attempt) => {
    const before = app.swaps();
    const archive = await pack(`race-${attempt}`).catch(() => null);
    const swaps = app.swaps() - before;
    const packed = archive === null ? '' : await tarOf(archive);
    expect(packed.includes(secret)).toBe(false);
    await rm(path.join(folder, `race-${attempt}`), { recursive: true, force: true });
    return { swaps };
  });
  await app.stop();
  await rm(await realFilesDir('swapped'), { recursive: true, force: true });
  await rm(await realFilesDir('swapped.aside'), { recursive: true, force: true });
});

test("a site's app that swaps a folder for a link during a restore is given nothing of the machine", async () => {
  const canary = await makeCanary('staged');
  const deep = path.join(site.files_dir, 'deep');
  await mkdir(deep);
  for (let number = 0; number < 300; number += 1) {
    await mkdir(path.join(deep, `d${number}`));
    await writeFile(path.join(deep, `d${number}`, 'secret.txt'), 'mine', { mode: 0o666 });
  }
  const archive = await pack('to-stage');
  const before = await Promise.all([lstat(canary), lstat(path.join(canary, 'secret.txt'))]);
  await raceOften(async (attempt) => {
    const releaseId = `race${attempt}`;
    let isStaging = true;
    const staging = stageSite(host, siteId, archive, { releaseId, fence: nextFence() })
      .catch(() => undefined)
      .finally(() => {
        isStaging = false;
      });
    const app = await startSwapping(path.join(await stagingDir(releaseId), 'deep'), canary, () => !isStaging);
    // Swaps count only if the staging is still running.
    const swaps = isStaging ? app.swaps() : 0;
    await staging;
    await app.stop();
    const after = await Promise.all([lstat(canary), lstat(path.join(canary, 'secret.txt'))]);
    const facts = ({ uid, gid, mode, mtimeMs }: (typeof after)[number]) => ({ uid, gid, mode, mtimeMs });
    expect(after.map(facts)).toEqual(before.map(facts));
    expect(await readdir(canary)).toEqual(['secret.txt']);
    expect(await readFile(path.join(canary, 'secret.txt'), 'utf8')).toBe(secret);
    await host.client.removeRelease(siteId, releaseId, claim(nextFence()));
    return { swaps };
  });
});

test('a job’s program sees the files of its release and nothing else of the machine', async () => {
  const canary = await makeCanary('seen');
  await symlink(canary, path.join(site.files_dir, 'canary'));
  await symlink('/etc', path.join(site.files_dir, 'etc'));
  const archive = await pack('links');
  expect(await tarOf(archive)).not.toContain(secret);
  await rm(path.join(site.files_dir, 'canary'));
  await rm(path.join(site.files_dir, 'etc'));
});

test('a file that its owner has closed to himself is packed like any other, and comes back closed', async () => {
  const closed = path.join(site.files_dir, 'closed');
  await mkdir(closed);
  await writeFile(path.join(closed, 'a.txt'), 'closed content');
  await giveToSite(closed);
  await chmod(path.join(closed, 'a.txt'), 0);
  await chmod(closed, 0);
  const archive = await pack('closed');
  expect(await tarOf(archive)).toContain('closed content');
  await stageSite(host, siteId, archive, { releaseId: 'closed', fence: nextFence() });
  const { files_dir } = await host.client.placeOfRelease(siteId, 'closed');
  expect((await lstat(path.join(files_dir, 'closed'))).mode & 0o7777).toBe(0);
  await host.client.removeRelease(siteId, 'closed', claim(nextFence()));
  await chmod(closed, 0o755);
  await rm(closed, { recursive: true });
});

test('an interrupted staging leaves no release, no folder and no database', async () => {
  const archive = await pack('whole');
  const caller = new AbortController();
  const { source } = archive.link;
  const late = {
    ...archive,
    link: {
      ...archive.link,
      source: { read: (name: string) => (name.startsWith('segment') ? stop() : source.read(name)) },
    },
  };
  const stop = (): Promise<Buffer> => {
    caller.abort(new Error('the lease is lost'));
    return new Promise(() => undefined);
  };
  const staging = stageSite(host, siteId, late, { releaseId: 'half', fence: nextFence(), signal: caller.signal });
  await expect(staging).rejects.toThrow('the lease is lost');
  const { releases } = await host.client.readSite(siteId);
  expect(releases).not.toContain('half');
  expect(
    (await readdir(path.dirname(path.dirname(await stagingParent())))).filter((name) => name.startsWith('half')),
  ).toEqual([]);
  const databases = await runSql(
    site.database_url,
    'select datname from pg_database where datdba = (select oid from pg_roles where rolname = current_user)',
  );
  expect(databases).toHaveLength(releases.length);
});

test("an organisation with eight loads that do not end keeps nobody else's job waiting", async () => {
  const archive = await pack('stalled');
  const { source } = archive.link;
  let stalled = 0;
  const stall = (): Promise<Buffer> => {
    stalled += 1;
    return new Promise(() => undefined);
  };
  const endless = {
    ...archive,
    link: {
      ...archive.link,
      source: { read: (name: string) => (name.startsWith('segment') ? stall() : source.read(name)) },
    },
  };
  const caller = new AbortController();
  const claimed = nextFence();
  let ended = 0;
  const loads = Array.from({ length: 8 }, (_, number) =>
    stageSite(host, siteId, endless, { releaseId: `endless-${number}`, fence: claimed, signal: caller.signal })
      .catch(() => undefined)
      .finally(() => {
        ended += 1;
      }),
  );
  await until(async () => stalled >= 4, { what: 'the loads to hold what they get', timeoutMs: 60_000 });
  const otherId = newSiteId();
  await host.client.ensureSite(otherId, { domain: 'b.org' }, claim(1));
  await packSite(host, otherId, {
    releaseId: 'initial',
    folder: path.join(folder, 'other'),
    fence: 2,
    organisation: 'other',
  });
  expect(ended).toBe(0);
  caller.abort(new Error('enough'));
  await Promise.all(loads);
  await host.client.destroySite(otherId, claim(3));
});

const releasesDir = (): string => path.join(host.config.SITES_DIR, 'live', siteId, 'releases');
const stagingParent = async (): Promise<string> => path.join(releasesDir(), 'initial', 'files');
const realFilesDir = async (name: string): Promise<string> => path.join(releasesDir(), 'initial', 'files', name);

/** Resolves with the folder into which a release is extracted, as soon as it exists. */
async function stagingDir(releaseId: string): Promise<string> {
  const isIt = (name: string): boolean => name.startsWith(`${releaseId}.next-`) || name === releaseId;
  const found = await until(async () => (await readdir(releasesDir())).find(isIt), {
    everyMs: 2,
    what: 'a folder that is staged into',
  });
  return path.join(releasesDir(), found, 'files');
}

async function giveToSite(target: string): Promise<void> {
  if (site.owner === null) return;
  const { uid, gid } = site.owner;
  await chown(target, uid, gid);
  for (const name of await readdir(target)) await chown(path.join(target, name), uid, gid);
}
