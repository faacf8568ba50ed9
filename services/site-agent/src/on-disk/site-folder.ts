import { randomBytes } from 'node:crypto';
import { readdir, readlink, rm } from 'node:fs/promises';
import path from 'node:path';
import type { Mode } from '@drydock/contracts/platform/values';
import { errorCodeOf, isLeftover, readIfThere, writeDurably } from '@drydock/process';
import { z } from 'zod';

/** Returns a random name, which does not tell the site: every role of a cluster can read the names of all roles. */
export const newSiteRole = (): string => `site_${randomBytes(16).toString('hex')}`;

/**
 * site.json: everything about a site that must survive. The file has mode 0600, because it contains the password of the
 * site's role.
 */
const siteRecordSchema = z.strictObject({
  site_id: z.string(),
  mode: z.enum(['live', 'sandbox']),
  domain: z.string(),
  role: z.string(),
  password: z.string(),
  http_port: z.int(),
  database_port: z.int(),
  uid: z.int().nullable(),
  /**
   * The organisation whose share of the machine the site uses. A site of an earlier version has none until a later call
   * names it, for example its next backup.
   */
  organisation_id: z.string().optional(),
  /**
   * The version and the account of the site's MariaDB servers. Absent if the site's databases are in a cluster of
   * Postgres.
   */
  mariadb: z.strictObject({ version: z.string(), account: z.int() }).optional(),
  /**
   * The cluster for the site's new databases, decided before the first database is made. It stays if the site changes
   * its organisation, because the site's role is in this cluster.
   */
  cluster: z.string().optional(),
});
export type SiteRecord = z.infer<typeof siteRecordSchema>;

/**
 * release.json: the database that belongs to the files beside it, and its cluster. Without a cluster, the database is
 * in the shared cluster or has its own server.
 */
const releaseRecordSchema = z.strictObject({
  release_id: z.string(),
  database: z.string(),
  cluster: z.string().optional(),
});
export type ReleaseRecord = z.infer<typeof releaseRecordSchema>;

/**
 * app.json: the number of the application's last process, and the time of the last restart. Both survive a restart of
 * the site agent.
 */
const appRecordSchema = z.strictObject({ generation: z.int().min(0), last_restart_at: z.string().nullable() });
export type AppRecord = z.infer<typeof appRecordSchema>;

/**
 * freeze.json: the freeze in force. `ends_at` is null until the site agent is restarted. The first restart begins the
 * time of the freeze again and sets `ends_at`. Later restarts keep it, so that they do not prolong the freeze.
 */
const freezeRecordSchema = z.strictObject({ ttl_ms: z.int().min(0), ends_at: z.iso.datetime().nullable() });
type FreezeRecord = z.infer<typeof freezeRecordSchema>;

/**
 * The layout on disk: `<sites>/<mode>/<siteId>/{current -> releases/<id>, releases/<id>/{release.json, files/},
 * site.json, app.json, app.log, fence, freeze.json}`.
 */
export class SiteFolder {
  readonly root: string;

  constructor(sitesDir: string, mode: Mode, siteId: string) {
    this.root = path.join(sitesDir, mode, siteId);
  }

  get recordFile(): string {
    return path.join(this.root, 'site.json');
  }

  get fenceFile(): string {
    return path.join(this.root, 'fence');
  }

  private get freezeFile(): string {
    return path.join(this.root, 'freeze.json');
  }

  get currentLink(): string {
    return path.join(this.root, 'current');
  }

  get releasesDir(): string {
    return path.join(this.root, 'releases');
  }

  releaseDir(releaseId: string): string {
    return path.join(this.releasesDir, releaseId);
  }

  filesDir(releaseId: string): string {
    return path.join(this.releaseDir(releaseId), 'files');
  }

  async readRecord(): Promise<SiteRecord | null> {
    const text = await readIfThere(this.recordFile);
    return text === null ? null : siteRecordSchema.parse(JSON.parse(text));
  }

  async writeRecord(record: SiteRecord): Promise<void> {
    await writeDurably(this.recordFile, `${JSON.stringify(record, null, 2)}\n`);
  }

  async readRelease(releaseId: string): Promise<ReleaseRecord | null> {
    const text = await readIfThere(path.join(this.releaseDir(releaseId), 'release.json'));
    return text === null ? null : releaseRecordSchema.parse(JSON.parse(text));
  }

  get appLogFile(): string {
    return path.join(this.root, 'app.log');
  }

  /** Before the first process the generation is 0. */
  async readApp(): Promise<AppRecord> {
    const text = await readIfThere(path.join(this.root, 'app.json'));
    return text === null ? { generation: 0, last_restart_at: null } : appRecordSchema.parse(JSON.parse(text));
  }

  async writeApp(record: AppRecord): Promise<void> {
    await writeDurably(path.join(this.root, 'app.json'), `${JSON.stringify(record)}\n`);
  }

  /** Null if the site is not frozen. */
  async readFreeze(): Promise<FreezeRecord | null> {
    const text = await readIfThere(this.freezeFile);
    return text === null ? null : freezeRecordSchema.parse(JSON.parse(text));
  }

  async writeFreeze(record: FreezeRecord): Promise<void> {
    await writeDurably(this.freezeFile, `${JSON.stringify(record)}\n`);
  }

  /**
   * Removes the record without syncing it to disk. If a power cut undoes the removal, the site is only frozen again for
   * the time of the freeze.
   */
  async removeFreeze(): Promise<void> {
    await rm(this.freezeFile, { force: true });
  }

  /** The id of the live release, to which the link `current` points. Null before the first release. */
  async readCurrent(): Promise<string | null> {
    try {
      return path.basename(await readlink(this.currentLink));
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return null;
      throw error;
    }
  }

  async listReleases(): Promise<string[]> {
    return (await this.readReleasesDir()).filter((name) => !isLeftover(name)).sort();
  }

  /**
   * Removes the leftover files of a crash in the site's folder. Returns the unfinished release folders, which may be
   * large.
   */
  async clearLeftovers(): Promise<string[]> {
    const names = (await readdir(this.root)).filter(isLeftover);
    await Promise.all(names.map((name) => rm(path.join(this.root, name), { force: true })));
    return (await this.readReleasesDir()).filter(isLeftover).map((name) => path.join(this.releasesDir, name));
  }

  /**
   * Lists the folder of releases. It may be missing only before the first release. Any other error is thrown, because
   * an empty list would make the site agent drop the databases of all releases.
   */
  private async readReleasesDir(): Promise<string[]> {
    try {
      return await readdir(this.releasesDir);
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return [];
      throw error;
    }
  }
}
