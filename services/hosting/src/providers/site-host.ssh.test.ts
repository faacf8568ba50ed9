import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { uuidv7 } from 'uuidv7';
import { fillRelease } from '../../test/site-state';
import { missingForSsh, openSshRig, type SshRig } from '../../test/ssh-host';
import { localBackupStorage } from './backup-storage.local';
import type { MovingOrder, SiteRef } from './site-host';
import { sshSiteHost } from './site-host.ssh';
import { SshConnection } from './ssh/ssh-connection';

const missing = missingForSsh();
const onHost = missing === '' ? describe : describe.skip;
const archiveKey = randomBytes(32);
const order = (fence = 1): MovingOrder => ({
  fence: String(fence),
  workflowId: 'ssh',
  signal: AbortSignal.timeout(60_000),
  progress: () => undefined,
});
const newSite = (): SiteRef => ({ siteId: uuidv7(), orgId: uuidv7(), mode: 'live' });

onHost(`a host over ssh${missing === '' ? '' : ` (left out: ${missing} is not installed here)`}`, () => {
  let rig: SshRig;
  const folder = mkdtempSync(path.join(tmpdir(), 'drydock-ssh-test-'));
  beforeAll(async () => {
    rig = await openSshRig(archiveKey);
  });
  afterAll(async () => {
    await rig.close();
    rmSync(folder, { recursive: true, force: true });
  });

  it('is not spoken to when it shows another key than the configured one', async () => {
    const config = { ...rig.config, host_key_fingerprint: `SHA256:${'A'.repeat(43)}` };
    const connection = new SshConnection(config);
    const site = newSite();
    await expect(sshSiteHost({ connection, config, archiveKey }).create(site, 'shop.example.com', order())).rejects.toThrow(
      'verification failed',
    );
    expect(existsSync(path.join(rig.sitesDir, 'live', site.siteId))).toBe(false);
    await connection.close();
  });

  it('runs nothing of what a customer wrote', async () => {
    const [site, mark] = [newSite(), path.join(folder, 'mark')];
    const domain = `'; touch ${mark}; $(touch ${mark}) \`touch ${mark}\` "`;
    await rig.driver.create(site, domain, order());
    const kept = readFileSync(path.join(rig.sitesDir, 'live', site.siteId, 'site.json'), 'utf8');
    expect(JSON.parse(kept)).toMatchObject({ domain });
    expect(existsSync(mark)).toBe(false);
    await rig.driver.destroy(site, order(2));
  });

  it('is sent nothing of an archive in which one byte differs', async () => {
    const [site, storage, key] = [newSite(), localBackupStorage(folder), `live/${uuidv7()}/1`];
    const { currentRelease } = await rig.driver.create(site, 'shop.example.com', order());
    await fillRelease(await rig.placeOf(site), 1);
    const to = { sink: storage.sink(key), archiveId: uuidv7(), sequence: 1, createdAt: new Date(), expectedRawBytes: null };
    const { manifestMac } = await rig.driver.pack(site, currentRelease, to, order());
    const segment = readdirSync(folder, { recursive: true, encoding: 'utf8' }).find((name) => name.endsWith('segment-00000001')) ?? '';
    const bytes = readFileSync(path.join(folder, segment));
    bytes[100] = (bytes[100] ?? 0) ^ 1;
    writeFileSync(path.join(folder, segment), bytes);
    const archive = { source: storage.source(key), archiveId: to.archiveId, manifestMac };
    await expect(rig.driver.stage(site, 'next', archive, order(2))).rejects.toMatchObject({ refusal: 'archive_refused' });
    expect(existsSync(path.join(rig.sitesDir, 'live', site.siteId, 'releases/next'))).toBe(false);
    await rig.driver.destroy(site, order(3));
  });
});
