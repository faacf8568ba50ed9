import { randomBytes } from 'node:crypto';
import { chmod, chown, mkdir, realpath, rename, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SiteHostError } from '@drydock/agent/site';
import { syncFolder } from '@drydock/process';
import type { AppRunner } from '../apps/site-app';
import type { Content } from '../content/content';
import type { ReleaseDatabase, SiteDatabases } from '../database/release-database';
import type { ReleaseRecord, SiteFolder, SiteRecord } from '../on-disk/site-folder';
import type { SlowRemoval } from './slow-removal';

const retireMs = 10_000;

export interface ReleaseOptions {
  releaseId: string;
  database: ReleaseDatabase;
  filesDir: string;
  openApp(filesDir: string): AppRunner;
  openContent(filesDir: string): Content;
}

/**
 * One release as it is served: its files, its pages and its application together, so that a request cannot mix
 * releases. A request calls `use` once.
 */
export class Release {
  readonly releaseId: string;
  readonly database: ReleaseDatabase;
  readonly filesDir: string;
  readonly app: AppRunner;
  readonly content: Content;
  private inFlight = 0;
  private readonly onIdle: (() => void)[] = [];

  private constructor({ releaseId, database, filesDir, openApp, openContent }: ReleaseOptions) {
    this.releaseId = releaseId;
    this.database = database;
    this.filesDir = filesDir;
    this.app = openApp(filesDir);
    this.content = openContent(filesDir);
  }

  static async open(options: ReleaseOptions): Promise<Release> {
    return new Release({ ...options, filesDir: await realpath(options.filesDir) });
  }

  async use<T>(work: () => Promise<T>): Promise<T> {
    this.inFlight++;
    try {
      return await work();
    } finally {
      this.inFlight--;
      if (this.inFlight === 0) for (const resolve of this.onIdle.splice(0)) resolve();
    }
  }

  /** Resolves with true once no request is running, or with false after `timeoutMs`. */
  async drained(timeoutMs: number): Promise<boolean> {
    if (this.inFlight === 0) return true;
    let timer: NodeJS.Timeout | undefined;
    const idle = new Promise<true>((resolve) => this.onIdle.push(() => resolve(true)));
    const late = new Promise<false>((resolve) => {
      timer = setTimeout(() => resolve(false), timeoutMs);
    });
    const outcome = await Promise.race([idle, late]);
    clearTimeout(timer);
    return outcome;
  }

  /**
   * Ends the release's processes once the running requests have ended, or after 10 s. The content child may run for ten
   * minutes more while visitors still download its files.
   */
  async retire(): Promise<void> {
    await this.drained(retireMs);
    await Promise.all([this.content.close(), this.app.close()]);
  }
}

/**
 * A release that is being filled. It does not count as a release yet. It is removed if it is discarded, or by the next
 * start after a crash.
 */
export interface UnfinishedRelease {
  filesDir: string;
  database: ReleaseDatabase;
  /** Turns the folder into a release by one rename. The content must already be on disk. */
  publish(): Promise<void>;
  discard(): Promise<void>;
}

/**
 * A site's releases. Each release has a folder, and the database that its release.json names. Two releases may share a
 * database.
 */
export class ReleaseStore {
  private readonly folder: SiteFolder;
  private readonly databases: SiteDatabases;
  private readonly removal: SlowRemoval;
  /** The releases that are being filled. Maps the folder of each to the name of its database. */
  private readonly unfinished = new Map<string, string>();

  constructor(folder: SiteFolder, databases: SiteDatabases, removal: SlowRemoval) {
    this.folder = folder;
    this.databases = databases;
    this.removal = removal;
  }

  async create(record: SiteRecord, releaseId: string): Promise<void> {
    const release = await this.prepare(record, releaseId);
    await release.publish();
  }

  /**
   * Makes the folder and the database of a future release. With `keptOf`, the future release shares the database of the
   * release `keptOf`. The folder has another name until `publish` renames it, so a crash leaves no folder that counts
   * as a release.
   */
  async prepare(record: SiteRecord, releaseId: string, keptOf: string | null = null): Promise<UnfinishedRelease> {
    const kept = keptOf === null ? null : await this.folder.readRelease(keptOf);
    if (keptOf !== null && kept === null) throw new SiteHostError('unknown_release', `there is no release ${keptOf}`);
    const place = kept === null ? this.databases.placeFor(record) : { database: kept.database, cluster: kept.cluster };
    const beside = `${this.folder.releaseDir(releaseId)}.next-${randomBytes(6).toString('hex')}`;
    this.unfinished.set(beside, place.database);
    try {
      const database = await (kept === null
        ? this.databases.create(record, place)
        : this.databases.open(record, place));
      return await this.prepareFolder(
        record,
        { release_id: releaseId, ...place },
        { beside, database, isKept: kept !== null },
      );
    } catch (error) {
      this.unfinished.delete(beside);
      throw error;
    }
  }

  private async prepareFolder(
    record: SiteRecord,
    release: ReleaseRecord,
    { beside, database, isKept }: { beside: string; database: ReleaseDatabase; isKept: boolean },
  ): Promise<UnfinishedRelease> {
    const filesDir = path.join(beside, 'files');
    await mkdir(filesDir, { recursive: true });
    // Only `files` goes to the site's account. The folder around it stays with this process's account, so that no
    // customer can put a link beside `files`.
    await chmod(filesDir, 0o750);
    if (record.uid !== null) await chown(filesDir, record.uid, record.uid);
    await closeToOthers(beside, record.uid);
    const publish = async (): Promise<void> => {
      await writeFile(path.join(beside, 'release.json'), `${JSON.stringify(release)}\n`, { mode: 0o600, flush: true });
      await syncFolder(beside);
      await rename(beside, this.folder.releaseDir(release.release_id));
      await syncFolder(this.folder.releasesDir);
      this.unfinished.delete(beside);
    };
    const discard = async (): Promise<void> => {
      await this.removal.moveAside(beside, record);
      if (!isKept) await database.drop();
      this.unfinished.delete(beside);
    };
    return { filesDir, database, publish, discard };
  }

  /**
   * Moves the folder to the trash, and then drops the database unless another release names it. In this order, a crash
   * in between leaves no release without its database.
   */
  async remove(record: SiteRecord, releaseId: string): Promise<void> {
    await this.removal.moveAside(this.folder.releaseDir(releaseId), record);
    await this.dropOrphans(record);
  }

  /**
   * Closes folders to other accounts, because earlier versions of this agent left them open. Removes what crashes have
   * left: unfinished folders, and databases that no release names.
   */
  async sweep(record: SiteRecord): Promise<void> {
    await closeToOthers(this.folder.root, record.uid);
    for (const releaseId of await this.folder.listReleases())
      await closeToOthers(this.folder.releaseDir(releaseId), record.uid);
    for (const folder of await this.folder.clearLeftovers())
      if (!this.unfinished.has(folder)) await this.removal.moveAside(folder, record);
    await this.dropOrphans(record);
  }

  dropAll(record: SiteRecord): Promise<void> {
    return this.databases.dropAll(record);
  }

  private async dropOrphans(record: SiteRecord): Promise<void> {
    const releases = await Promise.all(
      (await this.folder.listReleases()).map((releaseId) => this.folder.readRelease(releaseId)),
    );
    // A release whose release.json is missing may have any of the databases, so none is dropped.
    const named = releases.flatMap((release) => (release === null ? [] : [release.database]));
    if (named.length < releases.length) return;
    await this.databases.dropOthers(record, new Set([...named, ...this.unfinished.values()]));
  }
}

/** Lets only the site's account and this process enter the folder, whatever modes the customer gives to files below. */
export async function closeToOthers(folder: string, uid: number | null): Promise<void> {
  if (uid !== null) await chown(folder, 0, uid);
  await chmod(folder, uid === null ? 0o700 : 0o710);
}
