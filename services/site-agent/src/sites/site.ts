import { statfs } from 'node:fs/promises';
import path from 'node:path';
import { listenStubbornly, type WorkKind } from '@drydock/agent/host';
import {
  type AppDescription,
  type FreezeAnswer,
  firstReleaseId,
  type ProbeAnswer,
  type RestartAnswer,
  type SiteDescription,
  SiteHostError,
} from '@drydock/agent/site';
import { faultpoint, type GuardedChild, type Isolation, pointDurably } from '@drydock/process';
import type { Log } from '@drydock/service/telemetry';
import { AppNetwork } from '../apps/app-network';
import { SiteApp } from '../apps/site-app';
import { Content } from '../content/content';
import type {
  JobAccess,
  ReaderAccess,
  ReleaseDatabase,
  SiteDatabases,
  SiteEndpoint,
} from '../database/release-database';
import type { SiteFolder, SiteRecord } from '../on-disk/site-folder';
import { closeToOthers, Release, ReleaseStore } from '../releases/release-store';
import { Gate } from '../serving/gate';
import { probeSite } from '../serving/probe-site';
import { SiteWeb } from '../serving/site-web';
import type { SiteContext } from './site-context';
import { SiteDisk } from './site-disk';

/**
 * The time that running requests get to end before a switch. It is longer than a page's statement may take, and shorter
 * than visitors are willing to wait.
 */
const drainMs = 3_000;
/**
 * The length of the freeze that begins before a switch. After the switch, nobody may see the new release until it has
 * been probed. If the worker dies right after the switch, another worker takes over within 35 s: the lease ends after
 * at most 30 s (`WORKFLOW_LEASE_SECONDS`), and a sweep finds the workflow at most 5 s later (`WORKFLOW_SWEEP_MS`).
 */
const switchFreezeMs = 45_000;
const portLimitMs = 10_000;
const noAnswer = { http_status: null, app_generation: null, sql_ok: false, sql_answered: false };

/** A release that a job fills, and the job's access to the release's database. */
export interface PreparedRelease {
  filesDir: string;
  /** Valid until the release is published or discarded. Null for a release that uses the live database. */
  loader: JobAccess | null;
  publish(): Promise<void>;
  discard(): Promise<void>;
}

/**
 * One hosted site: its folder, its two addresses (web and database), and the link `current`, which names the release
 * that both addresses serve. Only one caller at a time may change a site.
 */
export class Site {
  readonly folder: SiteFolder;
  readonly gate: Gate;
  private settings: SiteRecord;
  private readonly context: SiteContext;
  private readonly releases: ReleaseStore;
  private readonly web: SiteWeb;
  private readonly databases: SiteDatabases;
  private readonly endpoint: SiteEndpoint;
  private readonly app: SiteApp;
  private current: Release | null = null;
  /** The live release, and old releases whose last requests still run. Two releases may have the same database. */
  private readonly served = new Set<Release>();
  readonly disk: SiteDisk;

  constructor(folder: SiteFolder, record: SiteRecord, context: SiteContext) {
    this.folder = folder;
    this.gate = new Gate(folder);
    this.settings = record;
    this.context = { ...context, log: context.log.child({ site_id: record.site_id }) };
    this.databases = context.databases.of(record);
    this.releases = new ReleaseStore(folder, this.databases, context.removal);
    const onStart = (child: GuardedChild): void => this.watch(child, 'serving');
    const isDiskFull = (): boolean => this.disk.areFilesFull;
    this.web = new SiteWeb({ ...this.context, gate: this.gate, currentRelease: () => this.current });
    const inTurn = (go: () => void): void => context.places.carried.take(this.organisation, go);
    this.endpoint = this.databases.openEndpoint({
      gate: this.gate,
      siteId: record.site_id,
      role: record.role,
      uid: record.uid,
      current: () => this.current?.database ?? null,
      isDiskFull: () => this.disk.isDatabaseClosed,
      served: () => [...this.served].map(({ database }) => database),
      inTurn,
      sessionBegan: () => context.cpu.sessionBegan(),
    });
    const network =
      context.network.kind === 'machine'
        ? null
        : new AppNetwork({ databasePort: record.database_port, policy: context.outgoing, inTurn });
    this.app = new SiteApp({ ...this.context, folder, uid: record.uid, network, isDiskFull, onStart });
    const watch = (child: GuardedChild): void => this.watch(child, 'job');
    this.disk = new SiteDisk({ ...this.context, uid: record.uid, endpoint: this.endpoint, watch });
  }

  /**
   * Opens both addresses, which serve the release that the link `current` names. Visitors of a site without a release
   * get a 503. After a failure, a second call does what is missing.
   */
  async open(): Promise<void> {
    if (this.endpoint.server.listening) return;
    await this.releases.sweep(this.record);
    const currentId = await this.folder.readCurrent();
    if (currentId !== null) this.current ??= await this.openRelease(currentId);
    await this.current?.database.serve();
    await this.gate.resume();
    const { host } = this.context;
    if (!this.web.server.listening) await listenStubbornly(this.web.server, this.record.http_port, host, portLimitMs);
    await listenStubbornly(this.endpoint.server, this.record.database_port, host, portLimitMs);
  }

  get record(): SiteRecord {
    return this.settings;
  }

  /**
   * Records the domain and the organisation. The domain is only for people, because the site is reached by its port.
   * The site uses the organisation's share of the machine.
   */
  async learn(told: { domain?: string; organisation_id?: string | undefined }): Promise<void> {
    const { domain = this.settings.domain, organisation_id = this.settings.organisation_id } = told;
    if (domain === this.settings.domain && organisation_id === this.settings.organisation_id) return;
    this.settings = { ...this.settings, domain, ...(organisation_id !== undefined && { organisation_id }) };
    await this.folder.writeRecord(this.settings);
  }

  /** Records the organisation for a job. The change takes turns with the site's other changes. */
  async learnOrganisation(organisationId: string): Promise<void> {
    if (organisationId === this.settings.organisation_id) return;
    await this.context.inTurn(this.settings.site_id, () => this.learn({ organisation_id: organisationId }));
  }

  get organisation(): string {
    return this.settings.organisation_id ?? this.settings.site_id;
  }

  /** Sets the priority of a process that works for this site. Call this when the process starts. */
  watch(child: GuardedChild, kind: WorkKind): void {
    this.context.cpu.watch(child, this.organisation, kind);
  }

  /** Counts the disk space of the live release, and acts if the site is over its limit. */
  async checkDisk(): Promise<void> {
    if (this.current !== null) await this.disk.check(this.current);
  }

  /** Makes the parts that a crash may have left out: role, first release, link `current`. */
  async complete(): Promise<void> {
    await closeToOthers(this.folder.root, this.record.uid);
    if (this.current !== null) return this.current.database.ensureAccount();
    await this.releases.remove(this.record, firstReleaseId);
    await this.releases.create(await this.completeRecord(), firstReleaseId);
    await this.point(firstReleaseId);
    this.current = await this.openRelease(firstReleaseId);
    await this.current.database.serve();
  }

  async describe(): Promise<SiteDescription> {
    const { site_id, mode, domain, http_port } = this.record;
    const { bavail, bsize } = await statfs(this.folder.root);
    return {
      site_id,
      mode,
      domain,
      url: `http://${this.context.host}:${http_port}/`,
      current_release: await this.readLiveId(),
      frozen: this.gate.isFrozen,
      releases: await this.folder.listReleases(),
      free_bytes: bavail * bsize,
    };
  }

  /** Null if the creation was interrupted. Until the site has opened, which may take long, the link tells it. */
  private async readLiveId(): Promise<string | null> {
    return this.current?.releaseId ?? (await this.folder.readCurrent());
  }

  get log(): Log {
    return this.context.log;
  }

  get isolation(): Isolation {
    return this.context.isolation;
  }

  /** The folder of a release and the access to its database, which the job that reads them closes at its end. */
  async openForReading(releaseId: string): Promise<{ filesDir: string; reader: ReaderAccess }> {
    const database = await this.requireRelease(releaseId);
    return { filesDir: this.folder.filesDir(releaseId), reader: await database.openReader() };
  }

  /** Returns the URL of the live database with the site's own login and address, for a job. */
  currentUrl(): string {
    if (this.current === null) throw new SiteHostError('site_unfinished', 'the site has no release yet');
    return this.databases.urlOf(this.record, this.endpointPlace, this.current.database);
  }

  /**
   * Makes an empty, unpublished release, and removes an old release with the same id. With `files`, the new release
   * uses the live database.
   */
  async prepareRelease(releaseId: string, contents: 'all' | 'files', signal: AbortSignal): Promise<PreparedRelease> {
    await this.context.removal.waitForRoom(this.record.site_id, signal);
    const inTurn = <T>(work: () => Promise<T>): Promise<T> => this.context.inTurn(this.record.site_id, work);
    const kept = contents === 'files' ? ((await this.readLiveId()) ?? firstReleaseId) : null;
    const release = await inTurn(async () => {
      await this.requireNotLive(releaseId);
      await this.releases.remove(this.record, releaseId);
      return this.releases.prepare(await this.completeRecord(), releaseId, kept);
    });
    const discard = (): Promise<void> => inTurn(() => release.discard());
    const publish = (): Promise<void> => inTurn(() => release.publish());
    const { filesDir, database } = release;
    if (kept !== null) return { filesDir, loader: null, publish, discard };
    const loader = await database.openLoader().catch(async (error: unknown) => {
      await discard();
      throw error;
    });
    return { filesDir, loader, publish: () => database.closeLoader().then(publish), discard };
  }

  async removeRelease(releaseId: string): Promise<void> {
    await this.requireNotLive(releaseId);
    await this.releases.remove(this.record, releaseId);
  }

  async freeze(ttlMs: number): Promise<FreezeAnswer> {
    await this.gate.freeze(ttlMs);
    return { frozen: true, drained: (await this.current?.drained(drainMs)) ?? true };
  }

  /**
   * Switches files and database together, by one rename of the link `current`. Waiting requests get the new release.
   * Sessions of the old database are ended, unless both releases have the same database. The next start reads the same
   * link, so after a kill the site serves either the old or the new release, never a mixture.
   */
  async switchTo(releaseId: string, expectedRelease: string): Promise<void> {
    const old = this.current;
    if (old === null) throw new SiteHostError('site_unfinished', 'the site has no release yet');
    const isThere = old.releaseId === releaseId;
    if (!isThere && old.releaseId !== expectedRelease) {
      throw new SiteHostError('release_mismatch', `${old.releaseId} is current, not ${expectedRelease}`);
    }
    if (isThere) return old.database.serve();
    await this.requireRelease(releaseId);
    const next = await this.openRelease(releaseId);
    // The content child is started while visitors still get the old release, so that they do not wait for it.
    await next.content.warm();
    const failure = await this.gate
      .freeze(switchFreezeMs)
      .then(() => old.drained(drainMs))
      .then(() => this.point(releaseId))
      .then(
        () => null,
        (error: unknown) => ({ error }),
      );
    // An error may have come after the rename, so the link on disk tells whether the site has moved.
    const hasMoved = failure === null || (await this.folder.readCurrent()) === releaseId;
    const [kept, left] = hasMoved ? [next, old] : [old, next];
    this.current = kept;
    this.disk.begin(kept);
    try {
      // After a restore of the files alone both releases have the same database, whose sessions go on.
      if (left.database.name !== kept.database.name) {
        if (hasMoved) this.endpoint.endSessions();
        await left.database.leave();
        await kept.database.serve();
      }
    } finally {
      // A repeated call finds the site switched and does not retire the release.
      void this.retire(left);
    }
    if (failure !== null) throw failure.error;
  }

  private async retire(release: Release): Promise<void> {
    try {
      await release.retire();
    } catch (error) {
      this.context.log.warn({ err: error }, 'processes of the old release did not end');
    }
    this.served.delete(release);
    await this.endpoint.closeDoors();
  }

  async probe(requestPath: string): Promise<ProbeAnswer> {
    if (this.current === null) return { ...noAnswer, detail: 'the site has no release yet, or has not opened' };
    const url = `http://${this.context.host}:${this.record.http_port}${requestPath}`;
    return probeSite({ url, headers: this.web.probeHeaders, database: this.current.database });
  }

  describeApp(): Promise<AppDescription> {
    return this.app.describe(this.current);
  }

  restartApp(): Promise<RestartAnswer> {
    return this.app.restart(this.current);
  }

  /** Removes the folder last, so that after an interruption the site is still known and can be destroyed again. */
  async destroy(): Promise<void> {
    await this.close();
    await this.releases.dropAll(this.record);
    await this.context.removal.moveAside(this.folder.root, this.record);
  }

  async close(): Promise<void> {
    this.gate.close();
    await Promise.all([this.web.close(), this.endpoint.close()]);
    await this.current?.retire();
    this.current = null;
  }

  private async point(releaseId: string): Promise<void> {
    await pointDurably(
      this.folder.currentLink,
      path.join('releases', releaseId),
      () => void faultpoint('site_host.switch.before_rename'),
    );
    faultpoint('site_host.switch.after_rename');
  }

  /** Decides and records the place of the site's databases, before the first database is made. */
  private async completeRecord(): Promise<SiteRecord> {
    const completed = this.databases.completeRecord(this.settings, this.organisation);
    if (completed !== this.settings) await this.folder.writeRecord(completed);
    this.settings = completed;
    return completed;
  }

  /** The address of the site's database. Sessions that use it count towards the site's share. */
  private get endpointPlace(): { host: string; port: number } {
    return { host: this.context.host, port: this.record.database_port };
  }

  /**
   * The database's URL for the application. In a network of its own, the application finds the site's database port at
   * its loopback.
   */
  private appUrl(database: ReleaseDatabase): string {
    const place = this.endpointPlace;
    return this.databases.urlOf(
      this.record,
      this.context.network.kind === 'own' ? { ...place, host: '127.0.0.1' } : place,
      database,
    );
  }

  private async openRelease(releaseId: string): Promise<Release> {
    const database = await this.requireRelease(releaseId);
    const door = await this.endpoint.openDoor(database);
    const release = await Release.open({
      releaseId,
      database,
      filesDir: this.folder.filesDir(releaseId),
      openApp: (filesDir) =>
        this.app.openRunner(filesDir, {
          url: this.appUrl(database),
          accept: (client) => this.endpoint.accept(client, database),
        }),
      openContent: (filesDir) => this.openContent(filesDir, database, door),
    });
    this.served.add(release);
    return release;
  }

  private openContent(filesDir: string, database: ReleaseDatabase, door: string | null): Content {
    const { isolation, log, places } = this.context;
    const url = this.databases.pagesUrlOf(this.record, this.endpointPlace, database, door);
    const pages = { url, socketFolder: door === null ? null : path.dirname(door) };
    const organisation = (): string => this.organisation;
    const endSessions = (numbers: number[]): Promise<void> => database.endSessions(numbers);
    const onStart = (child: GuardedChild): void => this.watch(child, 'serving');
    const { uid } = this.record;
    return new Content({ isolation, filesDir, uid, pages, log, places, organisation, endSessions, onStart });
  }

  private async requireRelease(releaseId: string): Promise<ReleaseDatabase> {
    const release = await this.folder.readRelease(releaseId);
    if (release === null) throw new SiteHostError('unknown_release', `there is no release ${releaseId}`);
    return this.databases.open(this.record, release);
  }

  private async requireNotLive(releaseId: string): Promise<void> {
    if (releaseId === (await this.readLiveId()))
      throw new SiteHostError('release_is_current', `${releaseId} is the live release`);
  }
}
