/**
 * Runs a host over ssh behind a bad network and, if the test runs as root, with a full disk.
 *
 * @tier long
 * @processes
 * @root long
 */
import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { describeWith } from '@drydock/testing/skipped';
import { startTcpFaultProxy, type TcpFaultProxy } from '@drydock/testing/tcp-fault-proxy';
import { until } from '@drydock/testing/wait';
import { canMountSmallDisk, describeOnHost, openSshRig, type SshRig } from '../../../test/ssh-host';
import { newSiteRef, nextOrder, packCurrent } from '../../../test/ssh-order';
import { doesServe } from '../../deleted-sites/check-serving.workflow';
import { localBackupStorage } from '../backup-storage.local';
import { type SiteHost, SiteHostError, type SiteRef } from '../site-host';
import { RemoteError, remoteCommand, runRemote } from './run-on-site';
import { sshSiteHost } from './site-host.ssh';
import { SshConnection } from './ssh-connection';

const onHost = describeOnHost();
const archiveKey = randomBytes(32);
const folder = mkdtempSync(path.join(tmpdir(), 'drydock-ssh-faults-'));
const storage = localBackupStorage(folder);
afterAll(() => rmSync(folder, { recursive: true, force: true }));

async function* nothing(): AsyncGenerator<Buffer> {}

onHost('a host over ssh behind a bad network', () => {
  let rig: SshRig;
  let proxy: TcpFaultProxy;
  let connection: SshConnection;
  let driver: SiteHost;
  beforeAll(async () => {
    rig = await openSshRig(archiveKey);
    proxy = await startTcpFaultProxy({ host: '127.0.0.1', port: rig.config.port });
    const config = { ...rig.config, port: proxy.port };
    connection = new SshConnection(config);
    driver = sshSiteHost({ live: { connection, config } }, archiveKey);
  });
  afterAll(async () => {
    await connection.close();
    await proxy.close();
    await rig.close();
  });

  /**
   * Each cut names the side that sends, and the number of its bytes after which the connection breaks. The cuts are
   * within the command, its input, its output, and a short answer.
   */
  const cuts = [
    ['client', 1_000],
    ['client', 300_000],
    ['upstream', 300_000],
    ['upstream', 250],
  ] as const;

  /**
   * Makes the call once for each of `cuts`, and then once without a cut. A call that moves fewer bytes than a cut
   * allows does not lose its connection.
   */
  async function afterLosses<T>(call: () => Promise<T>): Promise<T> {
    for (const [side, bytes] of cuts) {
      await driver.describe(newSiteRef());
      proxy.cutAfter(side, bytes);
      await call().catch((error: unknown) => {
        // A lost answer does not tell whether the change was made, so the error must be transient.
        expect(error).not.toBeInstanceOf(SiteHostError);
      });
      proxy.cutAfter(side, Number.MAX_SAFE_INTEGER);
    }
    return call();
  }

  /** The driver may notice only later that the silent connection is dead, so calls are repeated until one succeeds. */
  async function reconnect(site: SiteRef): Promise<void> {
    proxy.reset();
    proxy.faults.isBlackhole = false;
    await until(async () => (await driver.probe(site, nextOrder())).isSqlOk, { what: 'a new connection' });
  }

  it('every call that has lost its connection succeeds when it is repeated', async () => {
    const site = newSiteRef();
    await afterLosses(() => driver.create(site, { domain: 'shop.example.com' }, nextOrder()));
    await rig.fill(site, 1);
    writeFileSync(path.join(await rig.filesDirOf(site), 'big'), randomBytes(1_500_000));
    const wanted = await rig.stateOf(site);
    const archive = await afterLosses(() => packCurrent(driver, site, storage));
    await rig.fill(site, 2);
    const old = await rig.stateOf(site);
    await afterLosses(() => driver.stage(site, 'next', archive, nextOrder()));
    expect(await rig.stateOf(site)).toEqual(old);
    await afterLosses(() => driver.freeze(site, 30_000, nextOrder()));
    await afterLosses(() => driver.switchRelease(site, { from: 'first', to: 'next' }, nextOrder()));
    expect(await afterLosses(() => driver.probe(site, nextOrder()))).toMatchObject({ httpStatus: 200, isSqlOk: true });
    await afterLosses(() => driver.thaw(site, nextOrder()));
    expect(await rig.stateOf(site)).toEqual(wanted);
    await afterLosses(() => driver.retire(site, 'first', nextOrder()));
    expect(await driver.describe(site)).toMatchObject({ currentRelease: 'next', releases: ['next'] });
    await afterLosses(() => driver.destroy(site, nextOrder()));
    expect(await driver.describe(site)).toBeNull();
  });

  it('gives up a call at which nothing moves any more, and the next one connects again', async () => {
    const site = newSiteRef();
    await driver.create(site, { domain: 'shop.example.com' }, nextOrder());
    proxy.faults.isBlackhole = true;
    const silent = runRemote(connection, { command: remoteCommand('echo', [], 10), input: nothing(), silenceMs: 300 });
    await expect(silent).rejects.toThrow('silent');
    const stopped = driver.probe(site, nextOrder(AbortSignal.timeout(300)));
    await expect(stopped).rejects.toMatchObject({ name: 'TimeoutError' });
    await reconnect(site);
  });

  it('counts a site on a silent host as one that does not serve, long before the host is given up', async () => {
    const site = newSiteRef();
    await driver.create(site, { domain: 'tea.example.com' }, nextOrder());
    const order = nextOrder(AbortSignal.timeout(30_000));
    proxy.faults.isBlackhole = true;
    const step = { ...order, mode: site.mode };
    const serves = await doesServe({ siteHosts: { ssh: driver } }, step, { ...site, platform: 'ssh' });
    await reconnect(site);
    expect([serves, order.signal.aborted]).toEqual([false, false]);
  });

  it('has the host itself end a command that hangs, with all that it has started', async () => {
    const mark = randomBytes(8).toString('hex');
    const command = remoteCommand('sh -c "sleep 600; : $1" $1 & wait', [mark], 1);
    await expect(runRemote(connection, { command, input: nothing(), silenceMs: 30_000 })).rejects.toBeInstanceOf(
      RemoteError,
    );
    // The children of the command may end a moment later.
    await until(() => !execFileSync('ps', ['-eo', 'args'], { encoding: 'utf8' }).includes(mark), {
      what: 'the end of all of it',
    });
  });

  it('rejects with the error of the input, and does not blame the archive', async () => {
    async function* broken(): AsyncGenerator<Buffer> {
      yield Buffer.from('some of it');
      throw new Error('the storage went away');
    }
    const call = runRemote(connection, {
      command: remoteCommand('cat >/dev/null; exit 95', [], 10),
      input: broken(),
      silenceMs: 30_000,
    });
    await expect(call).rejects.toThrow('the storage went away');
  });
});

const onSmallDisk = canMountSmallDisk() ? onHost : describeWith('root that may mount a tmpfs');

onSmallDisk('a host over ssh whose disk is full', () => {
  let rig: SshRig;
  beforeAll(async () => {
    rig = await openSshRig(archiveKey, { diskMegabytes: 24 });
  });
  afterAll(() => rig.close());

  const fillUp = async (site: SiteRef, files: number): Promise<void> => {
    await rig.fill(site, 1);
    for (let number = 0; number < files; number += 1)
      writeFileSync(path.join(await rig.filesDirOf(site), `tiny-${number}`), 'x');
  };

  it('refuses a restore permanently when it runs full during it, serves on, and restores once there is room', async () => {
    const [site, other] = [newSiteRef(), newSiteRef()];
    for (const one of [site, other]) await rig.driver.create(one, { domain: 'shop.example.com' }, nextOrder());
    // On this disk each of these files takes a page of 4 KiB, but in the tar only about 2 KiB. So the check of free
    // space, which goes by the size of the tar, passes.
    await fillUp(site, 2_200);
    const archive = await packCurrent(rig.driver, site, storage);
    const wanted = await rig.stateOf(site);
    writeFileSync(path.join(await rig.filesDirOf(other), 'ballast'), randomBytes(8_000_000));
    const hosted = await rig.driver.describe(site);
    expect(hosted?.freeBytes).toBeGreaterThan(3_500_000);
    await expect(rig.driver.stage(site, 'next', archive, nextOrder())).rejects.toMatchObject({ refusal: 'no_space' });
    expect(await rig.driver.describe(site)).toMatchObject({ currentRelease: 'first', releases: ['first'] });
    expect(await rig.stateOf(site)).toEqual(wanted);
    rmSync(path.join(await rig.filesDirOf(other), 'ballast'));
    await rig.driver.retire(site, 'next', nextOrder());
    await rig.driver.stage(site, 'next', archive, nextOrder());
  });
});
