/**
 * Runs a host over ssh, with an OpenSSH server, a database server and a web server.
 *
 * @tier long
 * @processes
 */
import { randomBytes } from 'node:crypto';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { setImmediate as turn } from 'node:timers/promises';
import { until } from '@drydock/testing/wait';
import { pageOf } from '../../../test/site-state';
import { putAppOverSsh } from '../../../test/ssh-app';
import { describeOnHost, openSshRig, type SshRig } from '../../../test/ssh-host';
import { newSiteRef, nextOrder, packCurrent } from '../../../test/ssh-order';
import { localBackupStorage } from '../backup-storage.local';
import type { SiteRef } from '../site-host';
import { databaseOf } from './run-on-site';
import { sshSiteHost } from './site-host.ssh';
import { HostKeyError, SshConnection } from './ssh-connection';

const onHost = describeOnHost();
const archiveKey = randomBytes(32);

onHost('a host over ssh', () => {
  let rig: SshRig;
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-ssh-test-'));
  const storage = localBackupStorage(folder);
  beforeAll(async () => {
    rig = await openSshRig(archiveKey);
  });
  afterAll(async () => {
    await rig.close();
    rmSync(folder, { recursive: true, force: true });
  });

  const folderOf = (site: SiteRef): string => path.join(rig.sitesDir, site.mode, site.siteId);
  const givenSite = async (): Promise<SiteRef> => {
    const site = newSiteRef();
    await rig.driver.create(site, { domain: 'shop.example.com' }, nextOrder());
    return site;
  };

  it('gets no call if it shows another key than the configured one; the error names both keys', async () => {
    const config = { ...rig.config, host_key_fingerprint: `SHA256:${'A'.repeat(43)}` };
    const connection = new SshConnection(config);
    const site = newSiteRef();
    const driver = sshSiteHost({ live: { connection, config } }, archiveKey);
    const refused = driver.create(site, { domain: 'shop.example.com' }, nextOrder());
    await expect(refused).rejects.toBeInstanceOf(HostKeyError);
    await expect(refused).rejects.toThrow(
      `shows the host key ${rig.config.host_key_fingerprint}, and ${config.host_key_fingerprint} is`,
    );
    expect(existsSync(folderOf(site))).toBe(false);
    await connection.close();
  });

  it('runs nothing of what a customer wrote', async () => {
    const [site, mark] = [newSiteRef(), path.join(folder, 'mark')];
    const domain = `-n '; touch ${mark}; $(touch ${mark}) \`touch ${mark}\` "\n\\n%s -- --`;
    await rig.driver.create(site, { domain }, nextOrder());
    expect(JSON.parse(readFileSync(path.join(folderOf(site), 'site.json'), 'utf8'))).toMatchObject({ domain });
    expect(existsSync(mark)).toBe(false);
  });

  it('refuses a malformed name of a site or a release before anything is sent', async () => {
    for (const name of ['-rf', "a'b", 'a\nb', '../other', 'a/b', '', '$(id)', 'a b', 'ä', '.']) {
      const named = { ...newSiteRef(), siteId: name };
      await expect(rig.driver.create(named, { domain: 'shop.example.com' }, nextOrder())).rejects.toThrow(
        'cannot be a name on the host',
      );
      await expect(rig.driver.destroy(named, nextOrder())).rejects.toThrow('cannot be a name on the host');
      await expect(rig.driver.retire(newSiteRef(), name, nextOrder())).rejects.toThrow('cannot be a name on the host');
    }
  });

  it('keeps files with names that mean something to a shell', async () => {
    const site = await givenSite();
    await rig.fill(site, 1);
    for (const name of ['-rf', "it's", 'line\nbreak', '$(id)', '--checkpoint-action=exec=sh', '*'])
      writeFileSync(path.join(await rig.filesDirOf(site), name), name);
    const wanted = await rig.stateOf(site);
    const archive = await packCurrent(rig.driver, site, storage);
    await rig.fill(site, 2);
    await rig.driver.stage(site, 'next', archive, nextOrder());
    await rig.driver.switchRelease(site, { from: 'first', to: 'next' }, nextOrder());
    await rig.driver.thaw(site, nextOrder());
    expect(await rig.stateOf(site)).toEqual(wanted);
  });

  it('shows no password in the list of processes, whatever it does', async () => {
    const site = await givenSite();
    await rig.fill(site, 1);
    const watched = watchCommandLines();
    const archive = await packCurrent(rig.driver, site, storage);
    await rig.driver.stage(site, 'next', archive, nextOrder());
    await rig.driver.create(newSiteRef(), { domain: 'shop.example.com' }, nextOrder());
    await rig.driver.probe(site, nextOrder());
    const seen = await watched.end();
    expect(seen).toContain(site.siteId);
    expect(seen).toContain('pg_restore');
    expect(seen).not.toContain(new URL(rig.database.adminUrl).password);
    expect(seen).not.toContain(rig.loginOf(site).password);
  });

  it('gets nothing of an archive in which one byte differs', async () => {
    const site = await givenSite();
    await rig.fill(site, 1);
    const archive = await packCurrent(rig.driver, site, storage);
    const segment = readdirSync(path.join(folder, archive.key)).find((name) => name.endsWith('segment-00000001')) ?? '';
    const file = path.join(folder, archive.key, segment);
    const bytes = readFileSync(file);
    bytes[100] = (bytes[100] ?? 0) ^ 1;
    writeFileSync(file, bytes);
    await expect(rig.driver.stage(site, 'next', archive, nextOrder())).rejects.toMatchObject({
      refusal: 'archive_refused',
    });
    expect(existsSync(path.join(folderOf(site), 'releases/next'))).toBe(false);
  });

  it('removes a release whose stage was refused, with its database, but not on the word of an earlier attempt', async () => {
    const site = await givenSite();
    await rig.fill(site, 1);
    await rig.database.ask(
      rig.loginOf(site),
      `CREATE FUNCTION share(int) RETURNS int IMMUTABLE LANGUAGE sql AS 'SELECT 1';
       CREATE INDEX shares ON version (share(1));
       CREATE OR REPLACE FUNCTION share(n int) RETURNS int IMMUTABLE LANGUAGE plpgsql AS 'BEGIN RETURN n / 0; END'`,
    );
    const archive = await packCurrent(rig.driver, site, storage);
    const earlier = nextOrder();
    await expect(rig.driver.stage(site, 'next', archive, nextOrder())).rejects.toMatchObject({
      refusal: 'content_not_loaded',
    });
    expect(await rig.driver.describe(site)).toMatchObject({ releases: ['first'], begun: ['next'] });
    await expect(rig.driver.retire(site, 'next', earlier)).rejects.toMatchObject({ refusal: 'stale_fence' });
    const loginOfNext = { ...rig.loginOf(site), database: databaseOf(site, 'next') };
    expect(await rig.database.ask(loginOfNext, 'SELECT 1')).toBe('1');
    await rig.driver.retire(site, 'next', nextOrder());
    expect(await rig.driver.describe(site)).toMatchObject({ releases: ['first'], begun: [] });
    await expect(rig.database.ask(loginOfNext, 'SELECT 1')).rejects.toThrow('does not exist');
  });

  // Root removes everything, so this test can fail only if it runs as an ordinary account.
  it('keeps nothing of a site that is destroyed, whatever its folders allow their owner', async () => {
    const site = await givenSite();
    const closed = path.join(await rig.filesDirOf(site), 'closed');
    for (const [name, mode] of Object.entries({ 'read-only/inner': 0o555, 'shut/inner': 0o000, 'no-search': 0o600 })) {
      mkdirSync(path.join(closed, name), { recursive: true });
      writeFileSync(path.join(closed, name, 'file'), name);
      chmodSync(path.join(closed, name), mode);
      chmodSync(path.join(closed, path.dirname(name)), name.includes('/') ? mode : 0o555);
    }
    const outside = mkdtempSync(path.join(folder, 'outside-'));
    chmodSync(outside, 0o500);
    symlinkSync(outside, path.join(await rig.filesDirOf(site), 'link'));
    await rig.driver.destroy(site, nextOrder());
    const trash = path.join(rig.sitesDir, 'trash');
    await until(() => readdirSync(trash).length === 0, { what: 'an empty trash' });
    expect(statSync(outside).mode & 0o777).toBe(0o500);
  });

  it('restores the newest of a chain, and a backup of one site onto another as a drill does', async () => {
    const [site, other] = [await givenSite(), await givenSite()];
    await rig.fill(site, 1);
    const full = await packCurrent(rig.driver, site, storage);
    await rig.fill(site, 2);
    const wanted = await rig.stateOf(site);
    const increment = await packCurrent(rig.driver, site, storage, [full]);
    await rig.fill(other, 1);
    const chain = { ...increment, parents: [full] };
    await expect(rig.driver.stage(other, 'next', chain, nextOrder())).rejects.toMatchObject({
      refusal: 'archive_refused',
    });
    await expect(rig.driver.stage(site, 'next', increment, nextOrder())).rejects.toMatchObject({
      refusal: 'archive_refused',
    });
    await rig.driver.stage(other, 'next', { ...chain, origin: site }, nextOrder());
    await rig.driver.switchRelease(other, { from: 'first', to: 'next' }, nextOrder());
    await rig.driver.thaw(other, nextOrder());
    expect(await rig.stateOf(other)).toEqual(wanted);
  });

  it('carries more calls at once than the host takes on one connection', async () => {
    const site = await givenSite();
    const answers = await Promise.all(Array.from({ length: 25 }, () => rig.driver.describe(site)));
    expect(new Set(answers.map((answer) => answer?.currentRelease))).toEqual(new Set(['first']));
  });

  it('restarts an application by the customer’s own means, and nobody else’s', async () => {
    const [site, neighbour] = [await givenSite(), await givenSite()];
    for (const one of [site, neighbour]) putAppOverSsh(await rig.filesDirOf(one));
    const pidOf = async (one: SiteRef): Promise<string> => pageOf((await rig.driver.describe(one))?.url ?? '');
    const [before, beside] = [await pidOf(site), await pidOf(neighbour)];
    expect(await rig.driver.describeApp(site)).toEqual({ generation: 0, lastRestartAt: null });
    const pids = new Set([before]);
    for (let time = 0; time < 2; time += 1) {
      const { restartedAt, generation } = await rig.driver.restartApp(site, nextOrder());
      const { appGeneration } = await rig.driver.probe(site, nextOrder());
      expect(appGeneration).toBeGreaterThan(generation);
      expect((await rig.driver.describeApp(site))?.lastRestartAt).toEqual(restartedAt);
      pids.add(await pidOf(site));
    }
    expect(pids.size).toBe(3);
    expect(await pidOf(neighbour)).toBe(beside);
  });

  it('touches nothing outside a site whose tmp is a link, and says so; a site without an application too', async () => {
    const site = await givenSite();
    await expect(rig.driver.restartApp(site, nextOrder())).rejects.toMatchObject({ refusal: 'no_app' });
    const files = await rig.filesDirOf(site);
    putAppOverSsh(files);
    rmSync(path.join(files, 'tmp'), { recursive: true });
    const outside = mkdtempSync(path.join(tmpdir(), 'drydock-ssh-outside-'));
    symlinkSync(outside, path.join(files, 'tmp'));
    await expect(rig.driver.restartApp(site, nextOrder())).rejects.toMatchObject({ refusal: 'restart_blocked' });
    expect(readdirSync(outside)).toEqual([]);
    rmSync(outside, { recursive: true });
  });
});

/** Collects every command line that the list of processes shows until `end`. */
function watchCommandLines(): { end(): Promise<string> } {
  const seen = new Set<string>();
  let isOver = false;
  const look = (): void => {
    for (const name of readdirSync('/proc')) {
      if (!/^\d+$/.test(name)) continue;
      try {
        seen.add(readFileSync(`/proc/${name}/cmdline`, 'utf8').replaceAll('\0', ' '));
      } catch {
        // The process ended after `/proc` was listed.
      }
    }
  };
  const watching = (async () => {
    while (!isOver) {
      look();
      await turn();
    }
  })();
  return {
    end: async () => {
      isOver = true;
      await watching;
      return [...seen].join('\n');
    },
  };
}
