import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { until } from '@drydock/test-kit/wait';
import { claim, clearHost, type FilledSite, hostConfig, newSiteId, startHost, type TestHost } from '../test/host';

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
