import { randomBytes } from 'node:crypto';
import { mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Change, ChangeName } from '@drydock/agent/control';
import { type Accounts, PortAllocator } from '@drydock/agent/host';
import { admitFence, Changes, Jobs, type Ledger, refuseStale, rememberFence } from '@drydock/agent/jobs';
import { type EnsureSite, type SiteDescription, SiteHostError, type SiteStorage } from '@drydock/agent/site';
import type { SiteDatabase } from '@drydock/contracts/hosting/sites';
import type { Mode } from '@drydock/contracts/platform/values';
import { newSiteRole, SiteFolder, type SiteRecord } from '../on-disk/site-folder';
import { Site } from './site';
import type { SiteContext } from './site-context';
import { siteJobKinds } from './site-jobs';

/**
 * The pause before the next attempt to open a site, for example because its port is taken or its database cannot be
 * reached.
 */
const reopenMs = 5_000;
/** How long a start of the site agent waits for the existing sites. */
const openMs = 15_000;
const modes: readonly Mode[] = ['live', 'sandbox'];

/**
 * All sites of this site agent. Every change that a worker requests goes through this class. It runs the changes of one
 * site one at a time, checks the fence of each change, and writes the change to the ledger.
 */
export class HostedSites {
  private readonly sitesDir: string;
  private readonly context: SiteContext;
  readonly jobs: Jobs;
  private readonly changes: Changes;
  private readonly ports: PortAllocator;
  private readonly accounts: Accounts;
  private readonly destroyed: DestroyedFences;
  private readonly sites = new Map<string, Site>();
  /** The ids of sites whose record could not be read. */
  private readonly unreadable = new Set<string>();
  private isClosing = false;

  constructor(sitesDir: string, ledger: Ledger, accounts: Accounts, context: Omit<SiteContext, 'inTurn'>) {
    this.sitesDir = sitesDir;
    this.changes = new Changes(ledger);
    this.context = { ...context, inTurn: (siteId, work) => this.changes.inTurn(siteId, work) };
    this.jobs = new Jobs({ folder: sitesDir, kinds: siteJobKinds((siteId) => this.read(siteId)), log: context.log });
    this.ports = new PortAllocator(context.host);
    this.accounts = accounts;
    this.destroyed = new DestroyedFences(sitesDir);
  }

  /**
   * Serves every site on disk. No site waits for another that cannot be opened or whose database starts slowly.
   * Resolves when it has tried to open every site, or after 15 s.
   */
  async open(): Promise<void> {
    const folders: SiteFolder[] = [];
    for (const mode of modes) {
      await mkdir(path.join(this.sitesDir, mode), { recursive: true, mode: 0o711 });
      for (const siteId of await readdir(path.join(this.sitesDir, mode)))
        folders.push(new SiteFolder(this.sitesDir, mode, siteId));
    }
    const found = await Promise.all(folders.map(async (folder) => ({ folder, record: await this.readKnown(folder) })));
    // A folder without a record never became a site. Unreadable records are already logged by `readKnown`.
    const known = found.flatMap(({ folder, record }) => (record === null ? [] : [{ folder, record }]));
    for (const { record } of known)
      for (const port of [record.http_port, record.database_port]) this.ports.reserve(port);
    const opening = known.map(({ folder, record }) => {
      const site = new Site(folder, record, this.context);
      this.sites.set(record.site_id, site);
      return this.openInTurn(site);
    });
    await Promise.race([Promise.all(opening), sleep(openMs, undefined, { ref: false })]);
    await this.jobs.open();
  }

  read(siteId: string): Site {
    this.assertReadable(siteId);
    const site = this.sites.get(siteId);
    if (site === undefined) throw new SiteHostError('unknown_site', `there is no site ${siteId}`);
    return site;
  }

  offeredDatabases(): Promise<SiteDatabase[]> {
    return this.context.databases.offered();
  }

  all(): Iterable<Site> {
    return this.sites.values();
  }

  /** Reads what each site has on disk, by its id. */
  readStorage(): Record<string, SiteStorage> {
    return Object.fromEntries([...this.sites].map(([siteId, { disk }]) => [siteId, disk.storage]));
  }

  /** The organisation to which a site's processor time is counted. A site without an organisation counts by its id. */
  organisationOfSite(siteId: string): string {
    return this.sites.get(siteId)?.organisation ?? siteId;
  }

  /** The organisation of the site with this role; null for an unknown role. */
  organisationOf(role: string): string | null {
    for (const site of this.sites.values()) if (site.record.role === role) return site.organisation;
    return null;
  }

  /**
   * Maps each cluster to the organisation of its sites. If the sites of a cluster have different organisations, one of
   * these is chosen.
   */
  organisationsOfClusters(): Map<string | undefined, string> {
    return new Map([...this.sites.values()].map(({ record, organisation }) => [record.cluster, organisation]));
  }

  /**
   * Runs one change of an existing site. First ends the site's jobs that have an older fence. Throws `unknown_site`,
   * `stale_fence`, and the errors of `work`.
   */
  async change<T>(siteId: string, name: ChangeName, change: Change, work: (site: Site) => Promise<T>): Promise<T> {
    await this.jobs.endOlder(siteId, change.fence);
    return this.changes.run(siteId, name, change, async () => {
      const site = this.read(siteId);
      await admitFence(site.folder.fenceFile, change.fence);
      return () => work(site);
    });
  }

  ensure(siteId: string, wanted: EnsureSite): Promise<SiteDescription> {
    return this.changes.run(siteId, { op: 'ensure_site' }, wanted, async () => {
      await this.destroyed.admit(siteId, wanted.fence);
      const folder = this.sites.get(siteId)?.folder ?? new SiteFolder(this.sitesDir, wanted.mode, siteId);
      await mkdir(folder.releasesDir, { recursive: true, mode: 0o711 });
      await admitFence(folder.fenceFile, wanted.fence);
      return () => this.ensureAt(folder, siteId, wanted);
    });
  }

  async destroy(siteId: string, change: Change): Promise<void> {
    await this.jobs.endOlder(siteId, change.fence);
    return this.changes.run(siteId, { op: 'destroy_site' }, change, async () => {
      this.assertReadable(siteId);
      await this.destroyed.admit(siteId, change.fence);
      const site = this.sites.get(siteId);
      if (site !== undefined) await admitFence(site.folder.fenceFile, change.fence);
      return () => this.destroyKnown(siteId, site, change);
    });
  }

  async close(): Promise<void> {
    this.isClosing = true;
    await this.jobs.close();
    await this.changes.settle();
    await Promise.all([...this.sites.values()].map((site) => site.close()));
  }

  /** Throws if the site's record cannot be read. The site exists, so it must not be reported as lost or destroyed. */
  private assertReadable(siteId: string): void {
    if (this.unreadable.has(siteId))
      throw new SiteHostError(
        'internal',
        `the record of site ${siteId} cannot be read: mend it, and start the host again`,
      );
  }

  /**
   * Reads a folder's record. Returns null if the folder has no record, or if an operator has to repair the record.
   * Until the repair, another site may get the ports in the record.
   */
  private async readKnown(folder: SiteFolder): Promise<SiteRecord | null> {
    try {
      return await folder.readRecord();
    } catch (error) {
      this.unreadable.add(path.basename(folder.root));
      this.context.log.error(
        { err: error, folder: folder.root },
        'the record of a site could not be read; it is not served',
      );
      return null;
    }
  }

  private openInTurn(site: Site): Promise<void> {
    const { site_id: siteId } = site.record;
    return this.changes.inTurn(siteId, async () => {
      // The site may have been destroyed before its turn, and the site agent may be closing.
      if (this.isClosing || this.sites.get(siteId) !== site) return;
      try {
        await site.open();
      } catch (error) {
        this.context.log.error({ err: error, site_id: siteId }, 'a site could not be opened; it is tried again');
        setTimeout(() => void this.openInTurn(site), reopenMs).unref();
      }
    });
  }

  private async ensureAt(folder: SiteFolder, siteId: string, wanted: EnsureSite): Promise<SiteDescription> {
    let site = this.sites.get(siteId);
    if (site === undefined) {
      const record = (await folder.readRecord()) ?? (await this.newRecord(siteId, wanted));
      await folder.writeRecord(record);
      site = new Site(folder, record, this.context);
      this.sites.set(siteId, site);
    }
    await site.open();
    await site.complete();
    await site.learn(wanted);
    return site.describe();
  }

  private async newRecord(
    siteId: string,
    { domain, mode, organisation_id, database }: EnsureSite,
  ): Promise<SiteRecord> {
    return {
      site_id: siteId,
      mode,
      domain,
      role: newSiteRole(),
      password: randomBytes(24).toString('hex'),
      http_port: await this.ports.allocate(),
      database_port: await this.ports.allocate(),
      uid: process.getuid?.() === 0 ? await this.accounts.allocate() : null,
      ...(await this.context.databases.choose(database)),
      ...(organisation_id !== undefined && { organisation_id }),
    };
  }

  private async destroyKnown(siteId: string, site: Site | undefined, change: Change): Promise<void> {
    if (site !== undefined) {
      await site.destroy().catch((error: unknown) => {
        // A closed site cannot be opened again, so the next attempt to make or destroy the site gets a new object.
        this.sites.set(siteId, new Site(site.folder, site.record, this.context));
        throw error;
      });
      this.sites.delete(siteId);
      for (const port of [site.record.http_port, site.record.database_port]) this.ports.release(port);
    }
    await this.destroyed.remember(siteId, change.fence);
  }
}

/**
 * Keeps the fences of destroyed sites, whose folders have gone. A worker that comes late with an older fence cannot
 * bring such a site back.
 */
class DestroyedFences {
  private readonly folder: string;

  constructor(sitesDir: string) {
    this.folder = path.join(sitesDir, 'destroyed');
  }

  /** Throws `stale_fence` for a fence that is older than the fence of the destruction. */
  async admit(siteId: string, fence: string): Promise<void> {
    await refuseStale(path.join(this.folder, siteId), fence);
  }

  async remember(siteId: string, fence: string): Promise<void> {
    await mkdir(this.folder, { recursive: true, mode: 0o700 });
    await rememberFence(path.join(this.folder, siteId), fence);
  }
}
