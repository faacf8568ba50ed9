import { type CpuShares, countRemoved, type DiskState, diskStateOf } from '@drydock/agent/host';
import type { SiteStorage } from '@drydock/agent/site';
import type { GuardedChild, Isolation } from '@drydock/process';
import type { Log } from '@drydock/service/telemetry';
import type { SiteEndpoint } from '../database/release-database';
import type { Release } from '../releases/release-store';
import { countTree } from '../releases/site-box';

export interface SiteDiskSettings {
  /** The limit for the live files. The same limit applies separately to the live database. */
  diskBytes: number;
  isolation: Isolation;
  /** The site's account. Null stands for this process's account. */
  uid: number | null;
  endpoint: SiteEndpoint;
  cpu: CpuShares;
  /** Called with the child that counts the files. */
  watch(child: GuardedChild): void;
  log: Log;
}

/**
 * Watches the size of a site's live release on disk. If the files exceed the limit, the application is ended, and is
 * not started until they are within it. A database above the limit may only free space, as far as its server can
 * enforce that (`keepReadOnly`). A database that exceeds the limit by more than a fifth gets no sessions.
 */
export class SiteDisk {
  private readonly settings: SiteDiskSettings;
  private release: Release | null = null;
  private files: DiskState = 'within';
  private database: DiskState = 'within';
  private counted: Pick<SiteStorage, 'files' | 'database'> = { files: null, database: null };
  /** The number of the application's starts at the last count, or -1 if the application was running then. */
  private starts = -1;
  /** How many sessions had begun at the endpoint by the last check; -1 if the next check must read the size anyway. */
  private sessions = -1;

  constructor(settings: SiteDiskSettings) {
    this.settings = settings;
  }

  get areFilesFull(): boolean {
    return this.files !== 'within';
  }

  get isDatabaseClosed(): boolean {
    return this.database === 'far_over';
  }

  /** The disk space of the live release, as last counted. */
  get storage(): SiteStorage {
    return { limit_bytes: this.settings.diskBytes, ...this.counted };
  }

  /**
   * Begins to watch this release, which is live from now on. A new live release counts as `within` the limit until it
   * has been counted, because a restore may cure a site that is too large. No effect if the release is watched already.
   */
  begin(release: Release): void {
    if (this.release === release) return;
    // A restore of the files alone keeps the database, which then keeps its state too.
    const isDatabaseKept = this.release?.database.name === release.database.name;
    [this.release, this.files, this.starts, this.sessions] = [release, 'within', -1, -1];
    if (!isDatabaseKept) this.database = 'within';
    this.counted = { files: null, database: isDatabaseKept ? this.counted.database : null };
  }

  /** Counts the live release. After each wait of a check, the site may have switched to another release. */
  async check(release: Release): Promise<void> {
    this.begin(release);
    await this.checkFiles(release);
    await this.checkDatabase(release);
  }

  /** Only the application changes files of a live release. If it has not run since the last count, the size stays. */
  private async checkFiles(release: Release): Promise<void> {
    const { app } = release;
    if (!app.isActive && this.starts === app.starts && !this.areFilesFull) return;
    this.starts = app.isActive ? -1 : app.starts;
    const bytes = await this.countFiles(release);
    if (bytes === null || this.release !== release) return;
    this.files = this.note('files', this.files, bytes);
    if (this.areFilesFull) await app.end();
  }

  private async checkDatabase(release: Release): Promise<void> {
    if (this.release !== release) return;
    const { database } = release;
    const { sessionsBegun, isInUse } = this.settings.endpoint;
    if (!isInUse && !database.worksAlone && this.sessions === sessionsBegun) return;
    const found = await database.readUsage();
    if (found === null) return;
    const bytes = found.bytes + (found.pid === null ? 0 : await countRemoved(this.settings.cpu.processesOf(found.pid)));
    if (this.release !== release) return;
    this.database = this.note('database', this.database, bytes);
    // Open sessions may still write, and a closed database shrinks as its temporary files are removed. In both cases
    // the next check must read the size.
    this.sessions = isInUse || this.isDatabaseClosed ? -1 : sessionsBegun;
    if (found.isReadOnly === null) {
      // The site's sessions hold all memory of the server, so the server could not say whether the database is
      // read-only. The sessions are ended, and the next check asks again even if no new session has begun.
      this.sessions = -1;
      return database.endSiteSessions();
    }
    const isFull = this.database !== 'within';
    const isSwitched = isFull !== found.isReadOnly;
    if (isSwitched) await database.keepReadOnly(isFull);
    // A session keeps the rights that it had at its start. So a session that began with the limit could not write after
    // the limit's end either. The endpoint lets nobody into a closed database, but scheduled events (MariaDB) begin
    // sessions of their own.
    if (this.isDatabaseClosed || isSwitched) await database.endSiteSessions();
  }

  private note(what: 'files' | 'database', before: DiskState, bytes: number): DiskState {
    const { diskBytes, log } = this.settings;
    const state = diskStateOf(bytes, diskBytes);
    this.counted = { ...this.counted, [what]: { state, bytes, counted_at: new Date().toISOString() } };
    if (state !== before) log.warn({ what, state, bytes, may_have: diskBytes }, 'the disk space of a site');
    return state;
  }

  /**
   * Counts the bytes of the release's files, including those that the application has removed but still holds open.
   * Resolves with null if they cannot be counted. The state of the files then stays as it is.
   */
  private async countFiles({ filesDir, app }: Release): Promise<number | null> {
    const { isolation, uid, watch } = this.settings;
    const bytes = await countTree({ isolation, uid, watch }, filesDir);
    const pid = app.running?.boxPid ?? null;
    return bytes === null || pid === null ? bytes : bytes + (await countRemoved(this.settings.cpu.processesOf(pid)));
  }
}
