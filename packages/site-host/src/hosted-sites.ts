import { randomBytes } from 'node:crypto';
import { chmod, mkdir, readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Mode } from '@drydock/contracts/values';
import { Accounts } from './accounts';
import { admitFence, DestroyedFences } from './fences';
import type { Ledger } from './ledger';
import { PortAllocator } from './ports';
import type { Change, EnsureSite, SiteDescription } from './protocol';
import { SerialQueue } from './serial-queue';
import { Site, type SiteSurroundings } from './site';
import { SiteFolder, type SiteRecord } from './site-folder';
import { SiteHostError } from './site-host-error';

/** While something else holds its port, or its database cannot be reached. */
const reopenMs = 5_000;
const modes: readonly Mode[] = ['live', 'sandbox'];

/** All sites of this host. Every change of one site goes through here: one after the other, its fence admitted, a line in the ledger. */
export class HostedSites {
  private readonly sitesDir: string;
  private readonly around: SiteSurroundings;
  private readonly ledger: Ledger;
  private readonly ports: PortAllocator;
  private readonly accounts: Accounts;
  private readonly destroyed: DestroyedFences;
  private readonly sites = new Map<string, Site>();
  private readonly queues = new Map<string, SerialQueue>();
  private isClosing = false;

  constructor(sitesDir: string, ledger: Ledger, around: SiteSurroundings) {
    this.sitesDir = sitesDir;
    this.ledger = ledger;
    this.around = around;
    this.ports = new PortAllocator(around.host);
    this.accounts = new Accounts(sitesDir);
    this.destroyed = new DestroyedFences(sitesDir);
  }

  /** Serves every site that is on disk. One that cannot be opened is logged and does not keep the others from it. */
  async open(): Promise<void> {
    const folders: SiteFolder[] = [];
    for (const mode of modes) {
      await mkdir(path.join(this.sitesDir, mode), { recursive: true, mode: 0o711 });
      for (const siteId of await readdir(path.join(this.sitesDir, mode))) folders.push(new SiteFolder(this.sitesDir, mode, siteId));
    }
    const found = await Promise.all(folders.map(async (folder) => ({ folder, record: await folder.readRecord() })));
    // A folder without a record was never given out as a site.
    const known = found.flatMap(({ folder, record }) => (record === null ? [] : [{ folder, record }]));
    for (const { record } of known) for (const port of [record.http_port, record.database_port]) this.ports.reserve(port);
    await Promise.all(known.map(({ folder, record }) => this.openKnown(new Site(folder, record, this.around))));
  }

  read(siteId: string): Site {
    const site = this.sites.get(siteId);
    if (site === undefined) throw new SiteHostError('unknown_site', `there is no site ${siteId}`);
    return site;
  }

  /** Runs one change of a site that exists. Throws `unknown_site`, `stale_fence`, and whatever `work` throws. */
  change<T>(siteId: string, op: string, change: Change, work: (site: Site) => Promise<T>): Promise<T> {
    return this.inTurn(siteId, op, change, () => {
      const site = this.read(siteId);
      return { fenceFile: site.folder.fenceFile, work: () => work(site) };
    });
  }

  ensure(siteId: string, wanted: EnsureSite): Promise<SiteDescription> {
    return this.inTurn(siteId, 'ensure_site', wanted, async () => {
      await this.destroyed.admit(siteId, wanted.fence);
      const folder = this.sites.get(siteId)?.folder ?? new SiteFolder(this.sitesDir, wanted.mode, siteId);
      await mkdir(folder.releasesDir, { recursive: true, mode: 0o711 });
      await chmod(folder.root, 0o711);
      return { fenceFile: folder.fenceFile, work: () => this.ensureAt(folder, siteId, wanted) };
    });
  }

  destroy(siteId: string, change: Change): Promise<void> {
    return this.inTurn(siteId, 'destroy_site', change, async () => {
      await this.destroyed.admit(siteId, change.fence);
      const site = this.sites.get(siteId);
      return { fenceFile: site?.folder.fenceFile ?? null, work: () => this.destroyKnown(siteId, site, change) };
    });
  }

  async close(): Promise<void> {
    this.isClosing = true;
    await Promise.all([...this.queues.values()].map((queue) => queue.run(() => Promise.resolve())));
    await Promise.all([...this.sites.values()].map((site) => site.close()));
  }

  private async openKnown(site: Site): Promise<void> {
    const { site_id: siteId } = site.record;
    this.sites.set(siteId, site);
    try {
      await site.open();
    } catch (error) {
      this.around.log.error({ err: error, site_id: siteId }, 'a site could not be opened; it is tried again');
      setTimeout(() => this.reopen(site), reopenMs).unref();
    }
  }

  private reopen(site: Site): void {
    const { site_id: siteId } = site.record;
    // Its turn may come after it was destroyed, or when all is being closed.
    void this.queueOf(siteId).run(async () => {
      if (!this.isClosing && this.sites.get(siteId) === site) await this.openKnown(site);
    });
  }

  private async ensureAt(folder: SiteFolder, siteId: string, wanted: EnsureSite): Promise<SiteDescription> {
    let site = this.sites.get(siteId);
    if (site === undefined) {
      const record = (await folder.readRecord()) ?? (await this.newRecord(siteId, wanted));
      await folder.writeRecord(record);
      site = new Site(folder, record, this.around);
      this.sites.set(siteId, site);
    }
    await site.open();
    await site.complete();
    await site.renameDomain(wanted.domain);
    return site.describe();
  }

  private async newRecord(siteId: string, { domain, mode }: EnsureSite): Promise<SiteRecord> {
    return {
      site_id: siteId,
      mode,
      domain,
      role: `site_${siteId.replaceAll('-', '')}`,
      password: randomBytes(24).toString('hex'),
      http_port: await this.ports.allocate(),
      database_port: await this.ports.allocate(),
      uid: await this.accounts.allocate(),
    };
  }

  private async destroyKnown(siteId: string, site: Site | undefined, change: Change): Promise<void> {
    if (site !== undefined) {
      await site.destroy();
      this.sites.delete(siteId);
      for (const port of [site.record.http_port, site.record.database_port]) this.ports.release(port);
    }
    await this.destroyed.remember(siteId, change.fence);
  }

  private inTurn<T>(
    siteId: string,
    op: string,
    { fence, workflow_id = null }: { fence: string; workflow_id?: string | undefined | null },
    prepare: () => Promise<Prepared<T>> | Prepared<T>,
  ): Promise<T> {
    return this.queueOf(siteId).run(async () => {
      const entry = { site: siteId, op, fence, workflow_id };
      let work: () => Promise<T>;
      try {
        const prepared = await prepare();
        if (prepared.fenceFile !== null) await admitFence(prepared.fenceFile, fence);
        work = prepared.work;
      } catch (error) {
        this.ledger.append({ ...entry, outcome: 'refused' });
        throw error;
      }
      this.ledger.append({ ...entry, outcome: 'accepted' });
      return work();
    });
  }

  private queueOf(siteId: string): SerialQueue {
    const queue = this.queues.get(siteId) ?? new SerialQueue();
    this.queues.set(siteId, queue);
    return queue;
  }
}

interface Prepared<T> {
  fenceFile: string | null;
  work: () => Promise<T>;
}
