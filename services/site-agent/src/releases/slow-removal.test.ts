/**
 * @processes
 * @root
 */
import { spawn, spawnSync } from 'node:child_process';
import { randomBytes, randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { deriveKeys, encodeKeys, folderSource } from '@drydock/archive';
import { detectIsolation, findFreePort, type Isolation } from '@drydock/process';
import { createLog } from '@drydock/service/telemetry';
import { until } from '@drydock/testing/wait';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';
import { SlowRemoval } from './slow-removal';

/** Removes five files of each folder, and then pauses for longer than a test takes. */
const stalled = { batch_files: 5, pause_ms: 600_000, turn_files: 1_000 };

describe('a site of the agent', () => {
  let host: TestHost;
  let site: FilledSite;
  beforeEach(async () => {
    host = await startHost(await hostConfig());
    site = await host.client.ensureSite(newSiteId(), { domain: 'a.org' }, claim(1));
  });
  afterEach(() => clearHost(host, []));

  const trash = (): string => path.join(host.config.SITES_DIR, 'trash');
  const expectEmptyTrash = (): Promise<unknown> =>
    until(async () => (await readdir(trash())).length === 0, { what: 'the trash to be empty', timeoutMs: 60_000 });

  /** Runs shell commands in the site's files, as the site's account. */
  async function inFiles(script: string): Promise<void> {
    const account = site.owner === null ? {} : { uid: site.owner.uid, gid: site.owner.gid };
    const child = spawn('/bin/sh', ['-c', script], {
      ...account,
      cwd: site.files_dir,
      stdio: ['ignore', 'ignore', 'inherit'],
    });
    await once(child, 'exit');
  }

  test('a deleted site leaves nothing behind: names that are no text, folders that are closed, paths that no call can name, and its record', async () => {
    await inFiles(`
      printf x > "$(printf 'caf\\351')"; mkdir "$(printf 'd\\377')"; printf x > "$(printf 'd\\377/e\\376')"
      mkdir closed; printf x > closed/file; chmod 000 closed/file closed
      name=$(printf 'n%.0s' $(seq 250)); while mkdir $name 2>/dev/null && cd $name 2>/dev/null; do :; done`);
    await host.client.destroySite(site.site_id, claim(1));
    await expectEmptyTrash();
  });

  test('nothing outside of a deleted site is removed with it, wherever its links lead', async () => {
    const canary = path.join(host.config.SITES_DIR, 'canary');
    await mkdir(path.join(canary, 'deep'), { recursive: true });
    await writeFile(path.join(canary, 'deep', 'file'), 'not yours');
    await symlink(canary, path.join(site.files_dir, 'link'));
    await symlink(path.join(canary, 'deep', 'file'), path.join(site.files_dir, 'other'));
    spawnSync('ln', [path.join(canary, 'deep', 'file'), path.join(site.files_dir, 'hard')]);
    await host.client.destroySite(site.site_id, claim(1));
    await expectEmptyTrash();
    expect((await stat(path.join(canary, 'deep', 'file'))).nlink).toBe(1);
  });

  test('gets no next release while its old ones in the trash take more than it may have on disk', async () => {
    await host.stop();
    host = await startHost({ ...host.config, SITE_DISK_GB: 0.02 }, { pace: stalled });
    for (const fence of [3, 5]) {
      await inFiles("for n in $(seq 1000); do printf '%16384s' > $n; done");
      await host.client.destroySite(site.site_id, claim(fence));
      site = await host.client.ensureSite(site.site_id, { domain: 'a.org' }, claim(fence + 1));
    }
    const keys = encodeKeys(deriveKeys(randomBytes(32), randomBytes(16), randomUUID()));
    const begun = host.client.stage(
      site.site_id,
      {
        release_id: 'next',
        origin: { site_id: site.site_id, organisation_id: 'org' },
        chain: [{ archive_id: randomUUID(), manifest_mac: 'ab'.repeat(32), keys }],
      },
      { sources: [folderSource(host.config.SITES_DIR)] },
      { claim: { ...claim(7), signal: AbortSignal.timeout(3_000) } },
    );
    await expect(begun).rejects.toThrow('timeout');
    expect(await readdir(path.join(site.files_dir, '../../releases'))).toEqual(['initial']);
    // A release that was begun and given up again would be a third folder.
    expect(await readdir(trash())).toHaveLength(2);
  });
});

const isRoot = process.getuid?.() === 0;

test('an old release is removed with the files and folders that an operator has made in it as root', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-removal-'));
  await chmod(folder, 0o711);
  const files = path.join(folder, 'old', 'files');
  const made = (name: string): string => path.join(files, name);
  const own = ['', 'own', 'theirs/own'];
  for (const name of ['own', 'theirs/deep/er', 'own/theirs/deep', 'theirs/own'])
    await mkdir(made(name), { recursive: true, mode: 0o700 });
  for (const name of ['own/file', 'theirs/deep/er/file', 'own/theirs/deep/file', 'theirs/own/file', 'theirs.txt'])
    await writeFile(made(name), '', { mode: 0o600 });
  // The account cannot reach its folder `theirs/own`, because `theirs` belongs to root and has mode 0700.
  if (isRoot) for (const name of [...own, 'own/file']) await chown(made(name), 200_777, 200_777);
  const removal = new SlowRemoval(folder, await detectIsolation(), createLog({ service: 'test', level: 'silent' }));
  await removal.resume();
  await removal.moveAside(path.join(folder, 'old'), { site_id: 'site' });
  await removal.untilTried();
  expect(await readdir(path.join(folder, 'trash'))).toEqual([]);
  await removal.stop();
  await rm(folder, { recursive: true, force: true });
});

/**
 * Creates a folder in the trash. A child without root's rights cannot remove the file `closed/stays` until the folder
 * `closed` gets the mode 0700.
 */
async function folderThatStays(sitesDir: string, name: string): Promise<string> {
  const files = path.join(sitesDir, 'trash', name, 'files');
  await mkdir(path.join(files, 'closed'), { recursive: true });
  await mkdir(path.join(files, 'open', 'er'), { recursive: true });
  for (const file of ['closed/stays', 'open/er/goes', 'goes']) await writeFile(path.join(files, file), '');
  if (isRoot)
    for (const place of ['', 'open', 'open/er', 'closed']) await chown(path.join(files, place), 200_777, 200_777);
  await chmod(path.join(sitesDir, 'trash'), 0o711);
  await chmod(path.join(files, 'closed'), 0o500);
  return files;
}
const boxless = { kind: 'none', reason: 'no box can be made here' } as const;

test('files that cannot be removed delay nothing, are named, raise an alarm after a day, and go later', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-removal-'));
  await chmod(folder, 0o711);
  const hour = 3_600_000;
  const old = await folderThatStays(folder, `old.${Date.now() - 25 * hour}-aaaaaaaaaaaa`);
  const young = await folderThatStays(folder, `young.${Date.now() - hour}-bbbbbbbbbbbb`);
  const lines: string[] = [];
  const log = createLog({ service: 'test', destination: { write: (line) => void lines.push(line) } });
  const removal = new SlowRemoval(folder, boxless, log, { againMs: 20 });
  await removal.resume();
  await removal.untilTried();
  for (const files of [old, young]) expect(await readdir(files)).toEqual(['closed']);
  // Both folders are removed at the same time, so the order of the lines varies.
  const told = lines.map((line): { level: string } => JSON.parse(line));
  const [alarm, notice] = ['error', 'warn'].map((wanted) => told.find(({ level }) => level === wanted));
  expect(alarm).toMatchObject({ level: 'error', alarm: 'trash_not_removed', left: 1, named: ['EACCES closed/stays'] });
  expect(notice).toMatchObject({ level: 'warn', left: 1, named: ['EACCES closed/stays'] });
  expect(notice).not.toHaveProperty('alarm');
  expect(removal.oldestSeconds).toBeGreaterThanOrEqual(25 * 3_600);
  for (const files of [old, young]) await chmod(path.join(files, 'closed'), 0o700);
  await until(async () => (await readdir(path.join(folder, 'trash'))).length === 0, { what: 'a later try' });
  await removal.untilTried();
  expect(removal.oldestSeconds).toBe(0);
  await removal.stop();
  await rm(folder, { recursive: true, force: true });
});

async function folderOf(folder: string, name: string, count: number): Promise<string> {
  const files = path.join(folder, name, 'files');
  await mkdir(files, { recursive: true });
  for (let number = 0; number < count; number += 1) await writeFile(path.join(files, `f${number}`), '');
  if (isRoot) await chown(files, 200_777, 200_777);
  return path.join(folder, name);
}

test("folders of many files do not keep another organisation's waiting, however many there are", async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-removal-'));
  await chmod(folder, 0o711);
  const pace = { batch_files: 1, pause_ms: 50, turn_files: 10 };
  const removal = new SlowRemoval(folder, boxless, createLog({ service: 'test', level: 'silent' }), { pace });
  await removal.resume();
  await chmod(path.join(folder, 'trash'), 0o711);
  const organisations = ['greedy 1', 'greedy 2', 'greedy 3', 'greedy 4', 'other'];
  for (const [at, organisation_id] of organisations.entries())
    for (let number = 0; number < 2; number += 1) {
      const own = await folderOf(folder, `${organisation_id} ${number}`, organisation_id === 'other' ? 3 : 150);
      await removal.moveAside(own, { site_id: `site ${at}`, organisation_id });
    }
  const left = async (): Promise<string[]> => readdir(path.join(folder, 'trash'));
  await until(async () => !(await left()).some((name) => name.startsWith('other')), { what: "the other's folders" });
  expect((await left()).length).toBe(8);
  await removal.stop();
  await rm(folder, { recursive: true, force: true });
});

describe('the next release of a site with two old ones in the trash', () => {
  const limitBytes = 100 * 4_096;
  /** Moves two folders to the trash, with `one` and `two` files. */
  async function twoFolders(one: number, two: number): Promise<{ removal: SlowRemoval; folder: string }> {
    const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-removal-'));
    await chmod(folder, 0o711);
    const settings = { pace: stalled, siteBytes: limitBytes };
    const removal = new SlowRemoval(folder, boxless, createLog({ service: 'test', level: 'silent' }), settings);
    await removal.resume();
    await chmod(path.join(folder, 'trash'), 0o711);
    const made = [await folderOf(folder, 'one', one), await folderOf(folder, 'two', two)];
    for (const place of made) await removal.moveAside(place, { site_id: 'site' });
    return { removal, folder };
  }

  test('is made at once if they take less than a site may have on disk', async () => {
    const { removal, folder } = await twoFolders(40, 40);
    await removal.waitForRoom('site', new AbortController().signal);
    expect(await readdir(path.join(folder, 'trash'))).toHaveLength(2);
    await removal.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test('waits if they take more, even of empty files', async () => {
    const { removal, folder } = await twoFolders(60, 60);
    await expect(removal.waitForRoom('site', AbortSignal.timeout(1_500))).rejects.toThrow('timeout');
    await removal.stop();
    await rm(folder, { recursive: true, force: true });
  });

  test('is made as soon as one of them is gone', async () => {
    const { removal, folder } = await twoFolders(3, 150);
    await removal.waitForRoom('site', new AbortController().signal);
    expect(await readdir(path.join(folder, 'trash'))).toEqual([expect.stringMatching(/^two/)]);
    await removal.stop();
    await rm(folder, { recursive: true, force: true });
  });
});

test('the age of the oldest folder in the trash is a metric', async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-removal-'));
  await chmod(folder, 0o711);
  const files = await folderThatStays(folder, `old.${Date.now() - 90_000_000}-aaaaaaaaaaaa`);
  const program = `
    const { SlowRemoval } = require('./services/site-agent/dist/releases/slow-removal.js');
    const { createLog } = require('./packages/service/dist/telemetry/log.js');
    const removal = new SlowRemoval(process.argv[1], { kind: 'none', reason: '' }, createLog({ service: 'test', level: 'silent' }));
    removal.resume().then(() => process.stdout.write('ready'));
    setInterval(() => undefined, 1_000);`;
  const port = await findFreePort();
  const child = spawn(
    process.execPath,
    ['--require', './packages/service/dist/telemetry/preload.js', '-e', program, folder],
    {
      cwd: path.resolve(__dirname, '../../../..'),
      env: { PATH: process.env['PATH'], OTEL_EXPORTER_PROMETHEUS_PORT: String(port) },
      stdio: ['ignore', 'pipe', 'inherit'],
    },
  );
  const gone = once(child, 'exit');
  try {
    await once(child.stdout, 'data');
    const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
    expect(Number(/^site_trash_oldest\S* ([\d.]+)$/m.exec(text)?.[1])).toBeGreaterThanOrEqual(90_000);
  } finally {
    child.kill('SIGKILL');
    await gone;
    await chmod(path.join(files, 'closed'), 0o700);
    await rm(folder, { recursive: true, force: true });
  }
});

/**
 * The attacker's program. It waits until the removal has begun to empty the folder `victim`, and then replaces this
 * folder by a link to `canary`. The canary's files have the same names but do not belong to the site. A removal that
 * followed the link would delete them.
 */
const exchange = `
const fs = require('node:fs');
const [canary, count] = [process.argv[1], Number(process.argv[2])];
process.stdout.write('ready');
while (fs.readdirSync('victim').length === count) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1);
fs.renameSync('victim', 'aside');
fs.symlinkSync(canary, 'victim');
process.exit(fs.readdirSync('aside').length > 0 ? 0 : 3);
`;
const fileNames = Array.from({ length: 150 }, (_, number) => `f${number}`);
/**
 * Removes the files in three batches. The attacker's program has to act in one of the two pauses between the batches.
 */
const slowly = { batch_files: 50, pause_ms: 250, turn_files: 1_000 };

/**
 * Removes a site while a process of the site replaces a folder by a link to the canary. Returns how many files remain
 * in the canary, or null if the folder was not replaced before its last file had been removed. `isOfRoot` gives the
 * folder and its files to root, so that only root can remove them.
 */
async function removeUnderAttack(isolation: Isolation, { isOfRoot = false } = {}): Promise<number | null> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-removal-'));
  await chmod(folder, 0o711);
  const files = path.join(folder, 'site', 'files');
  const [victim, canary] = [path.join(files, 'victim'), path.join(folder, 'canary')];
  for (const place of [victim, canary]) {
    await mkdir(place, { recursive: true });
    for (const name of fileNames) await writeFile(path.join(place, name), '');
  }
  // Every account may delete in the canary. Otherwise the canary's mode could protect its files, and the test would not
  // show whether the box protects them.
  await chmod(canary, 0o777);
  const account = isRoot ? { uid: 200_777, gid: 200_777 } : {};
  if (isRoot) for (const place of isOfRoot ? [files] : [files, victim]) await chown(place, 200_777, 200_777);
  const app = spawn(process.execPath, ['-e', exchange, canary, String(fileNames.length)], {
    ...account,
    cwd: files,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const gone = once(app, 'exit');
  await once(app.stdout, 'data');
  const removal = new SlowRemoval(folder, isolation, createLog({ service: 'test', level: 'silent' }), { pace: slowly });
  await removal.resume();
  // Without a box, a child of the site's account needs a way to the files.
  await chmod(path.join(folder, 'trash'), 0o711);
  await removal.moveAside(path.join(folder, 'site'), { site_id: 'site' });
  await removal.untilTried();
  await removal.stop();
  app.kill('SIGKILL');
  const [exitCode]: unknown[] = await gone;
  const left = (await readdir(canary)).length;
  await rm(folder, { recursive: true, force: true });
  return exitCode === 0 ? left : null;
}

/**
 * Repeats {@link removeUnderAttack} until the folder was replaced while it still had files. With `isFollowed`, an
 * attempt counts only if the removal has followed the link.
 */
async function leftAfterExchange(
  isolation: Isolation,
  { isFollowed, isOfRoot = false }: { isFollowed: boolean; isOfRoot?: boolean },
): Promise<number> {
  for (let attempt = 0; attempt < 80; attempt += 1) {
    const left = await removeUnderAttack(isolation, { isOfRoot });
    if (left !== null && !(isFollowed && left === fileNames.length)) return left;
  }
  throw new Error('the folder was never exchanged in time: nothing was tested');
}

test('a folder that becomes a link during its removal leads nowhere in a box, and out of the site without', async () => {
  expect(await leftAfterExchange(boxless, { isFollowed: true })).toBeLessThan(fileNames.length);
  const isolation = await detectIsolation();
  expect(isolation.kind).not.toBe('none');
  expect(await leftAfterExchange(isolation, { isFollowed: false })).toBe(fileNames.length);
});

const asRoot = isRoot ? test : test.skip;
asRoot("nor does it lead the removal out that has root's rights (as root)", async () => {
  expect(await leftAfterExchange(await detectIsolation(), { isFollowed: false, isOfRoot: true })).toBe(
    fileNames.length,
  );
});
