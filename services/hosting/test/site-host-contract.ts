import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { uuidv7 } from 'uuidv7';
import { localBackupStorage } from '../src/providers/backup-storage.local';
import type { FencedCallWithProgress, SiteHost, SiteRef } from '../src/providers/site-host';
import type { SiteHostRig } from './site-host-rig';

const archiveKey = randomBytes(32);

/** Defines the tests that every driver of a site host must pass. Call it in a `describe`. */
export function siteHostContract(open: (archiveKey: Buffer) => Promise<SiteHostRig>): void {
  let rig: SiteHostRig;
  let driver: SiteHost;
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-contract-'));
  const storage = localBackupStorage(folder);
  const made: SiteRef[] = [];
  beforeAll(async () => {
    rig = await open(archiveKey);
    driver = rig.driver;
  });
  afterAll(async () => {
    for (const site of made) await driver.destroy(site, call(2 ** 52));
    await rig.close();
    rmSync(folder, { recursive: true, force: true });
  });

  let fence = 100;
  const nextFence = (): number => {
    fence += 1;
    return fence;
  };
  const call = (number = nextFence()): FencedCallWithProgress => ({
    fence: String(number),
    workflowId: 'contract',
    signal: AbortSignal.timeout(120_000),
    progress: () => undefined,
  });
  const newSite = async (mode: SiteRef['mode'] = 'live') => {
    const site: SiteRef = { siteId: uuidv7(), orgId: uuidv7(), mode };
    made.push(site);
    return { site, hosted: await driver.create(site, { domain: `${site.siteId}.example.com` }, call()) };
  };
  const packOf = async (site: SiteRef, releaseId: string) => {
    const [archiveId, key] = [uuidv7(), `live/${site.siteId}/${uuidv7()}/1`];
    const packed = await driver.pack(
      site,
      releaseId,
      { sink: storage.sink(key), archiveId, sequence: 1, createdAt: new Date(), expectedRawBytes: null },
      call(),
    );
    return { source: storage.source(key), archiveId, manifestMac: packed.manifestMac, packed };
  };

  it('makes a site once and serves it, and knows nothing of others', async () => {
    const { site, hosted } = await newSite();
    expect(await driver.create(site, { domain: `${site.siteId}.example.com` }, call())).toMatchObject({
      url: hosted.url,
      currentRelease: hosted.currentRelease,
    });
    expect(await driver.describe({ ...site, siteId: uuidv7() })).toBeNull();
    expect(await driver.probe(site, call())).toMatchObject({ isSqlOk: true });
  });

  it('keeps sandbox sites in a world of their own', async () => {
    const { site } = await newSite('sandbox');
    expect(existsSync(path.join(rig.sitesDir, 'sandbox', site.siteId))).toBe(true);
    expect(existsSync(path.join(rig.sitesDir, 'live', site.siteId))).toBe(false);
  });

  it('packs, stages, switches and retires, and comes to the same end when told twice', async () => {
    const { site, hosted } = await newSite();
    await rig.fill(site, 1);
    const wanted = await rig.stateOf(site);
    const archive = await packOf(site, hosted.currentRelease);
    expect(archive.packed.rawBytes).toBeGreaterThan(1_000);
    await rig.fill(site, 2);
    for (let time = 0; time < 2; time += 1) await driver.stage(site, 'next', archive, call());
    expect((await rig.stateOf(site)).page).toBe('200 file=2 row=2');
    const move = { from: hosted.currentRelease, to: 'next' };
    for (let time = 0; time < 2; time += 1) await driver.freeze(site, 5_000, call());
    for (let time = 0; time < 2; time += 1) await driver.switchRelease(site, move, call());
    expect(await driver.probe(site, call())).toMatchObject({ httpStatus: 200, isSqlOk: true });
    for (let time = 0; time < 2; time += 1) await driver.thaw(site, call());
    expect(await rig.stateOf(site)).toEqual(wanted);
    for (let time = 0; time < 2; time += 1) await driver.retire(site, hosted.currentRelease, call());
    expect(await driver.describe(site)).toMatchObject({ currentRelease: 'next', releases: ['next'] });
  });

  it('stages the files alone beside the database that is served, which stays whichever of the two releases goes', async () => {
    const { site, hosted } = await newSite();
    await rig.fill(site, 1);
    const files = { ...(await packOf(site, hosted.currentRelease)), contents: 'files' as const };
    await rig.fill(site, 2);
    const goLive = async (from: string, to: string): Promise<void> => {
      await driver.freeze(site, 5_000, call());
      await driver.switchRelease(site, { from, to }, call());
      await driver.thaw(site, call());
      for (let time = 0; time < 2; time += 1) await driver.retire(site, from, call());
    };
    for (let time = 0; time < 2; time += 1) await driver.stage(site, 'gone', files, call());
    await driver.retire(site, 'gone', call());
    expect((await rig.stateOf(site)).page).toBe('200 file=2 row=2');
    await driver.stage(site, 'files', files, call());
    await goLive(hosted.currentRelease, 'files');
    expect((await rig.stateOf(site)).page).toBe('200 file=1 row=2');
    expect(await driver.probe(site, call())).toMatchObject({ httpStatus: 200, isSqlOk: true });
    const whole = await packOf(site, 'files');
    await rig.fill(site, 3);
    await driver.stage(site, 'whole', whole, call());
    await goLive('files', 'whole');
    expect((await rig.stateOf(site)).page).toBe('200 file=1 row=2');
    expect(await driver.describe(site)).toMatchObject({ releases: ['whole'] });
  });

  it('refuses what no repetition can mend, by name', async () => {
    const { site, hosted } = await newSite();
    const archive = await packOf(site, hosted.currentRelease);
    await expect(driver.stage(site, 'bad', { ...archive, manifestMac: '0'.repeat(64) }, call())).rejects.toMatchObject({
      refusal: 'archive_refused',
    });
    await expect(driver.stage(site, 'bad', { ...archive, archiveId: uuidv7() }, call())).rejects.toMatchObject({
      refusal: 'archive_refused',
    });
    await driver.stage(site, 'next', archive, call());
    await expect(driver.switchRelease(site, { from: 'bad', to: 'next' }, call())).rejects.toMatchObject({
      refusal: 'moved',
    });
    await expect(driver.retire(site, hosted.currentRelease, call())).rejects.toMatchObject({ refusal: 'current' });
    await expect(driver.retire(site, 'next', call(1))).rejects.toMatchObject({ refusal: 'stale_fence' });
  });

  it('stops when it is told to, and can begin again', async () => {
    const { site, hosted } = await newSite();
    writeFileSync(path.join(await rig.filesDirOf(site), 'big'), randomBytes(4_000_000));
    const archive = await packOf(site, hosted.currentRelease);
    const stopped = { ...call(), signal: AbortSignal.abort(new Error('lease lost')) };
    await expect(driver.stage(site, 'next', archive, stopped)).rejects.toThrow('lease lost');
    await driver.stage(site, 'next', archive, call());
  });

  it('destroys a site, and does not mind one that is gone', async () => {
    const { site } = await newSite();
    await driver.destroy(site, call());
    await driver.destroy(site, call());
    expect(await driver.describe(site)).toBeNull();
  });
}
