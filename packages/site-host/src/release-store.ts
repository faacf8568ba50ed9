import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { syncFolder } from '@drydock/host-kit/durable-file';
import type { SiteFolder, SiteRecord } from './site-folder';
import type { SitesCluster } from './sites-cluster';
import type { SlowRemoval } from './slow-removal';

/** A site's releases on disk and in the cluster: each is a folder and the one database that its release.json names. */
export class ReleaseStore {
  private readonly folder: SiteFolder;
  private readonly cluster: SitesCluster;
  private readonly removal: SlowRemoval;

  constructor(folder: SiteFolder, cluster: SitesCluster, removal: SlowRemoval) {
    this.folder = folder;
    this.cluster = cluster;
    this.removal = removal;
  }

  /** Makes an empty release. Its folder appears by one rename, last of all, so that what a crash leaves is no release. */
  async create(record: SiteRecord, releaseId: string): Promise<void> {
    const database = `${record.role}_${randomBytes(6).toString('hex')}`;
    await this.cluster.createDatabase(database, record.role);
    const beside = `${this.folder.releaseDir(releaseId)}.next-${randomBytes(6).toString('hex')}`;
    const files = path.join(beside, 'files');
    await mkdir(files, { recursive: true });
    // The way to the files is open to the site's account; the release itself stays ours, so that no customer can plant a pointer in it.
    await chmod(beside, 0o711);
    await chmod(files, 0o755);
    if (record.uid !== null) await chown(files, record.uid, record.uid);
    await writeFile(path.join(beside, 'release.json'), `${JSON.stringify({ release_id: releaseId, database })}\n`, {
      mode: 0o600,
      flush: true,
    });
    await syncFolder(beside);
    await rename(beside, this.folder.releaseDir(releaseId));
    await syncFolder(this.folder.releasesDir);
  }

  /** Moves the folder aside, and then drops the database, which no release names any more: a crash in between leaves no release without its own. */
  async remove(record: SiteRecord, releaseId: string): Promise<void> {
    await this.removal.moveAside(this.folder.releaseDir(releaseId));
    await this.dropOrphans(record);
  }

  /** Clears what crashes left: half-made folders, and databases that no release names. */
  async sweep(record: SiteRecord): Promise<void> {
    for (const folder of await this.folder.clearLeftovers()) await this.removal.moveAside(folder);
    await this.dropOrphans(record);
  }

  private async dropOrphans(record: SiteRecord): Promise<void> {
    const releases = await Promise.all((await this.folder.listReleases()).map((releaseId) => this.folder.readRelease(releaseId)));
    // One that does not say which database is its own may own any of them.
    if (releases.includes(null)) return;
    const named = new Set(releases.map((release) => release?.database));
    const orphans = (await this.cluster.listDatabases(record.role)).filter((database) => !named.has(database));
    for (const database of orphans) await this.cluster.dropDatabase(database);
  }
}
