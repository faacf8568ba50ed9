import { realpathSync, statSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { uuidv7 } from 'uuidv7';
import { type BackupStorage, prefixOfKey } from '../../src/providers/backup-storage';
import type { PackedArchive, SiteRef, StagedRelease } from '../../src/providers/site-host';
import type { SiteHostRig } from '../site-host-rig';
import { newSiteRef, nextOrder } from '../ssh-order';
import { emptyFolder } from './build-tree';
import { readTree, type Tree } from './read-tree';

export interface Account {
  uid: number;
  gid: number;
}

export interface RoundTrip {
  before: Tree;
  after: Tree;
  packed: PackedArchive;
  staged: StagedRelease;
  account: Account;
}

/** Makes, backs up, changes and restores the files of a site, by the calls that workflows make to its host. */
export async function throughHost(
  { driver, filesDirOf }: SiteHostRig,
  storage: BackupStorage,
  build: (directory: string, account: Account) => void,
): Promise<RoundTrip> {
  const site: SiteRef = newSiteRef();
  const hosted = await driver.create(site, { domain: `${site.siteId}.example.com` }, nextOrder());
  try {
    const directory = realpathSync(await filesDirOf(site));
    const { uid, gid } = statSync(directory);
    build(directory, { uid, gid });
    const before = readTree(directory);
    const [archiveId, key] = [uuidv7(), `live/${site.siteId}/tree/1`];
    const order = () => nextOrder(AbortSignal.timeout(600_000));
    const to = { sink: storage.sink(key), archiveId, sequence: 1, createdAt: new Date(), expectedRawBytes: null };
    const packed = await driver.pack(site, hosted.currentRelease, to, order());
    emptyFolder(directory);
    writeFileSync(path.join(directory, 'index.html'), 'changed');
    const staged = await driver.stage(
      site,
      'next',
      { source: storage.source(key), archiveId, manifestMac: packed.manifestMac },
      order(),
    );
    await driver.switchRelease(site, { from: hosted.currentRelease, to: 'next' }, nextOrder());
    await driver.thaw(site, nextOrder());
    const restored = realpathSync(await filesDirOf(site));
    const after = readTree(restored);
    await storage.removeAll(prefixOfKey(key));
    return { before, after, packed, staged, account: { uid, gid } };
  } finally {
    await driver.destroy(site, nextOrder());
  }
}
