/**
 * @processes
 * @root
 */
import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmod, chown, mkdir, mkdtemp, readdir, rm, stat, symlink, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { detectIsolation, type Isolation } from '@drydock/process/isolation';
import { createLog } from '@drydock/service/telemetry/log';
import { until } from '@drydock/testing/wait';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../../test/host';
import { SlowRemoval } from './slow-removal';

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

/** Runs a shell's lines in the site's files, as the site's account. */
async function inFiles(script: string): Promise<void> {
  const account = site.owner === null ? {} : { uid: site.owner.uid, gid: site.owner.gid };
  const child = spawn('/bin/sh', ['-c', script], { ...account, cwd: site.files_dir, stdio: ['ignore', 'ignore', 'inherit'] });
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

test('nothing beside the site goes with it, wherever its links lead', async () => {
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

/** Once the removal is within the folder, it is another one: what lies there has the same names, and is not the site's. */
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
/** The exchange has a second for its turn, twice. */
const slowly = { batch_files: 50, pause_ms: 1_000 };

/**
 * Removes a site whose own process exchanges a folder for a link meanwhile; answers how many files are left where the link leads, or null where that process got its turn
 * too late, after the last file.
 */
async function removeUnderAttack(isolation: Isolation): Promise<number | null> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'drydock-removal-'));
  await chmod(folder, 0o711);
  const files = path.join(folder, 'site', 'files');
  const [victim, canary] = [path.join(files, 'victim'), path.join(folder, 'canary')];
  for (const place of [victim, canary]) {
    await mkdir(place, { recursive: true });
    for (const name of fileNames) await writeFile(path.join(place, name), '');
  }
  // The one place of this machine that the site's account may write to, if only it gets there.
  await chmod(canary, 0o777);
  const isRoot = process.getuid?.() === 0;
  const account = isRoot ? { uid: 200_777, gid: 200_777 } : {};
  if (isRoot) for (const place of [files, victim]) await chown(place, 200_777, 200_777);
  const app = spawn(process.execPath, ['-e', exchange, canary, String(fileNames.length)], {
    ...account,
    cwd: files,
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const gone = once(app, 'exit');
  await once(app.stdout, 'data');
  const removal = new SlowRemoval(folder, isolation, createLog({ service: 'test', level: 'silent' }), slowly);
  await removal.resume();
  // A plain child of the site's account has to get to the files, which a box shows without any way to them.
  await chmod(path.join(folder, 'trash'), 0o711);
  await removal.moveAside(path.join(folder, 'site'));
  await removal.settle();
  app.kill('SIGKILL');
  const [exitCode]: unknown[] = await gone;
  const left = (await readdir(canary)).length;
  await rm(folder, { recursive: true, force: true });
  return exitCode === 0 ? left : null;
}

/** Removes such sites until the exchange has come in time. Where it `isFollowed`, also until the link was there before the removal's next file. */
async function leftAfterExchange(isolation: Isolation, { isFollowed }: { isFollowed: boolean }): Promise<number> {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const left = await removeUnderAttack(isolation);
    if (left !== null && !(isFollowed && left === fileNames.length)) return left;
  }
  throw new Error('the folder was never exchanged in time: nothing was tested');
}

test('a folder that becomes a link while it is removed leads the removal out of the site without its box, and nowhere with it', async () => {
  const boxless = { kind: 'none', reason: 'to see what the box is for' } as const;
  expect(await leftAfterExchange(boxless, { isFollowed: true })).toBeLessThan(fileNames.length);
  const isolation = await detectIsolation();
  expect(isolation.kind).not.toBe('none');
  expect(await leftAfterExchange(isolation, { isFollowed: false })).toBe(fileNames.length);
});
