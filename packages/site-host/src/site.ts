import { statfs } from 'node:fs/promises';
import path from 'node:path';
import { faultpoint } from '@drydock/faults/faultpoint';
import { pointDurably } from '@drydock/host-kit/durable-file';
import { listenStubbornly } from '@drydock/host-kit/listen-stubbornly';
import type { Log } from '@drydock/service-kit/log';
import { DatabaseEndpoint, endpointDatabase } from './database-endpoint';
import { Gate } from './gate';
import { probeSite } from './probe-site';
import type { AppDescription, FreezeAnswer, ProbeAnswer, ReleaseDescription, RestartAnswer, SiteDescription } from './protocol';
import { Release } from './release';
import { ReleaseStore } from './release-store';
import { SiteApp } from './site-app';
import type { SiteFolder, SiteRecord } from './site-folder';
import { SiteHostError } from './site-host-error';
import { SiteWeb } from './site-web';
import type { SitesCluster } from './sites-cluster';
import type { SlowRemoval } from './slow-removal';

/** Longer than a page's statement may take, shorter than visitors bear. */
const drainMs = 3_000;
/** From the switch on nobody sees the new release before it was probed: what is left of the caller's freeze may not last over the wait for the last visitors. */
const switchFreezeMs = 15_000;
const portLimitMs = 10_000;
const firstReleaseId = 'initial';

export interface SiteSurroundings {
  host: string;
  cluster: SitesCluster;
  removal: SlowRemoval;
  log: Log;
}

/** One hosted site: its folder, its two addresses, and the one pointer that both resolve. Changes are made one at a time by the caller. */
export class Site {
  readonly folder: SiteFolder;
  private settings: SiteRecord;
  private readonly around: SiteSurroundings;
  private readonly releases: ReleaseStore;
  private readonly gate = new Gate();
  private readonly web: SiteWeb;
  private readonly endpoint: DatabaseEndpoint;
  private readonly app: SiteApp;
  private current: Release | null = null;

  constructor(folder: SiteFolder, record: SiteRecord, around: SiteSurroundings) {
    this.folder = folder;
    this.settings = record;
    this.around = { ...around, log: around.log.child({ site_id: record.site_id }) };
    this.releases = new ReleaseStore(folder, around.cluster, around.removal);
    this.app = new SiteApp({ folder, uid: record.uid, log: this.around.log });
    this.web = new SiteWeb({ gate: this.gate, currentRelease: () => this.current, log: this.around.log });
    const { host, port } = around.cluster;
    const currentDatabase = (): string | null => this.current?.database ?? null;
    this.endpoint = new DatabaseEndpoint({ gate: this.gate, role: record.role, cluster: { host, port }, currentDatabase });
  }

  /** Serves what the pointer names; a site without one yet answers 503 until it is completed. Again: goes on where a failure stopped it. */
  async open(): Promise<void> {
    if (this.endpoint.server.listening) return;
    await this.releases.sweep(this.record);
    const currentId = await this.folder.readCurrent();
    if (currentId !== null) this.current ??= await this.openRelease(currentId);
    const { host } = this.around;
    if (!this.web.server.listening) await listenStubbornly(this.web.server, this.record.http_port, host, portLimitMs);
    await listenStubbornly(this.endpoint.server, this.record.database_port, host, portLimitMs);
  }

  get record(): SiteRecord {
    return this.settings;
  }

  /** The domain is only carried for people: the site is reached by its port. */
  async renameDomain(domain: string): Promise<void> {
    if (domain === this.settings.domain) return;
    this.settings = { ...this.settings, domain };
    await this.folder.writeRecord(this.settings);
  }

  /** Makes what a crash may have kept from being made: role, first release, pointer. */
  async complete(): Promise<void> {
    await this.around.cluster.ensureRole(this.record.role, this.record.password);
    if (this.current !== null) return;
    await this.releases.remove(this.record, firstReleaseId);
    await this.releases.create(this.record, firstReleaseId);
    await this.point(firstReleaseId);
    this.current = await this.openRelease(firstReleaseId);
  }

  async describe(): Promise<SiteDescription> {
    const { site_id, mode, domain, role, password, http_port, database_port } = this.record;
    const { bavail, bsize } = await statfs(this.folder.root);
    return {
      site_id,
      mode,
      domain,
      url: `http://${this.around.host}:${http_port}/`,
      files_dir: path.join(this.folder.currentLink, 'files'),
      database_url: `postgresql://${role}:${password}@${this.around.host}:${database_port}/${endpointDatabase}`,
      current_release: this.current?.releaseId ?? null,
      frozen: this.gate.isFrozen,
      releases: await this.folder.listReleases(),
      free_bytes: bavail * bsize,
      owner: this.owner,
    };
  }

  async describeRelease(releaseId: string): Promise<ReleaseDescription> {
    const { database } = await this.requireRelease(releaseId);
    return {
      release_id: releaseId,
      is_current: releaseId === this.current?.releaseId,
      files_dir: this.folder.filesDir(releaseId),
      database_url: this.directUrl(database),
      owner: this.owner,
    };
  }

  async stageRelease(releaseId: string): Promise<ReleaseDescription> {
    this.requireNotCurrent(releaseId);
    await this.releases.remove(this.record, releaseId);
    await this.releases.create(this.record, releaseId);
    return this.describeRelease(releaseId);
  }

  async removeRelease(releaseId: string): Promise<void> {
    this.requireNotCurrent(releaseId);
    await this.releases.remove(this.record, releaseId);
  }

  async freeze(ttlMs: number): Promise<FreezeAnswer> {
    this.gate.freeze(ttlMs);
    return { frozen: true, drained: (await this.current?.drained(drainMs)) ?? true };
  }

  thaw(): void {
    this.gate.thaw();
  }

  /**
   * Files and database change together, by one rename. Requests that wait get the new release, sessions of the old database are ended.
   * Killed before the rename the site is as before, after it the site is the new one: a restart reads the same pointer.
   */
  async switchTo(releaseId: string, expectedRelease: string): Promise<void> {
    const old = this.current;
    if (old === null) throw new SiteHostError('site_unfinished', 'the site has no release yet');
    const isThere = old.releaseId === releaseId;
    if (!isThere && old.releaseId !== expectedRelease) {
      throw new SiteHostError('release_mismatch', `${old.releaseId} is current, not ${expectedRelease}`);
    }
    if (isThere) return;
    await this.requireRelease(releaseId);
    const next = await this.openRelease(releaseId);
    this.gate.freeze(switchFreezeMs);
    await old.drained(drainMs);
    const failure = await this.point(releaseId).then(
      () => null,
      (error: unknown) => ({ error }),
    );
    // What is on disk decides, also after an error: it may have come after the rename.
    const hasMoved = failure === null || (await this.folder.readCurrent()) === releaseId;
    const [kept, left] = hasMoved ? [next, old] : [old, next];
    this.current = kept;
    if (hasMoved) this.endpoint.endSessions();
    await this.around.cluster.endSessions(left.database);
    this.retire(left);
    if (failure !== null) throw failure.error;
  }

  private retire(release: Release): void {
    release.retire().catch((error: unknown) => this.around.log.warn({ err: error }, 'connections of the old release did not end'));
  }

  async probe(requestPath: string): Promise<ProbeAnswer> {
    if (this.current === null) return { http_status: null, app_generation: null, sql_ok: false, detail: 'the site has no release yet' };
    const url = `http://${this.around.host}:${this.record.http_port}${requestPath}`;
    return probeSite({ url, headers: this.web.probeHeaders, databaseUrl: this.directUrl(this.current.database) });
  }

  describeApp(): Promise<AppDescription> {
    return this.app.describe(this.current);
  }

  restartApp(): Promise<RestartAnswer> {
    return this.app.restart(this.current);
  }

  /** Databases and role first, the folder last: interrupted anywhere, the site is still known and can be destroyed again. */
  async destroy(): Promise<void> {
    await this.close();
    const { cluster, removal } = this.around;
    for (const database of await cluster.listDatabases(this.record.role)) await cluster.dropDatabase(database);
    await cluster.dropRole(this.record.role);
    await removal.moveAside(this.folder.root);
  }

  async close(): Promise<void> {
    this.gate.close();
    await Promise.all([this.web.close(), this.endpoint.close()]);
    await this.current?.retire();
    this.current = null;
  }

  private get owner(): SiteDescription['owner'] {
    const { uid } = this.record;
    return uid === null ? null : { uid, gid: uid };
  }

  private async point(releaseId: string): Promise<void> {
    await pointDurably(this.folder.currentLink, path.join('releases', releaseId), () => void faultpoint('site_host.switch.before_rename'));
    faultpoint('site_host.switch.after_rename');
  }

  private directUrl(database: string): string {
    return this.around.cluster.directUrl(this.record.role, this.record.password, database);
  }

  private async openRelease(releaseId: string): Promise<Release> {
    const { database } = await this.requireRelease(releaseId);
    const url = this.directUrl(database);
    return Release.open({
      releaseId,
      database,
      filesDir: this.folder.filesDir(releaseId),
      url,
      openApp: (filesDir) => this.app.openRunner(filesDir, url),
    });
  }

  private async requireRelease(releaseId: string): Promise<{ database: string }> {
    const release = await this.folder.readRelease(releaseId);
    if (release === null) throw new SiteHostError('unknown_release', `there is no release ${releaseId}`);
    return release;
  }

  private requireNotCurrent(releaseId: string): void {
    if (releaseId === this.current?.releaseId) throw new SiteHostError('release_is_current', `${releaseId} is the live release`);
  }
}
