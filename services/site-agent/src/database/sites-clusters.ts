import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import type { Accounts } from '@drydock/agent/host';
import { SiteHostError } from '@drydock/agent/site';
import type { Log } from '@drydock/service/telemetry';
import type { SiteRecord } from '../on-disk/site-folder';
import { OwnCluster } from './own-cluster';
import type { SitesCluster } from './sites-cluster';

export interface SitesClustersOptions {
  sitesDir: string;
  /** The name is the host's own, and the same at every start. */
  name: string;
  /** The server that the operator runs. Null without one. */
  shared: SitesCluster | null;
  /**
   * Whether new databases are placed there too. Otherwise the cluster serves only the databases that it already has.
   */
  isSharedForAll: boolean;
  accounts: Accounts;
  log: Log;
}

/** The part of a site's record that names its cluster. */
type Clustered = Pick<SiteRecord, 'cluster'>;

/**
 * All clusters with databases of this host's sites: one for each organisation, and a shared one if the operator has
 * named it. A release names the cluster of its database; one without a name, as in earlier versions, is in the shared
 * one.
 */
export class SitesClusters {
  private readonly options: SitesClustersOptions;
  private readonly own = new Map<string, Promise<OwnCluster>>();
  /** The clusters of `own` that are open, by name. */
  private readonly opened = new Map<string, OwnCluster>();
  private readonly removals = new Map<string, Promise<void>>();

  constructor(options: SitesClustersOptions) {
    this.options = options;
  }

  /** The name of an organisation's cluster; undefined if all sites share one. */
  nameFor(organisation: string): string | undefined {
    if (this.options.isSharedForAll) return undefined;
    return /^[\w-]{1,64}$/.test(organisation) ? organisation : createHash('sha256').update(organisation).digest('hex');
  }

  /** The name of the cluster for a site's new databases. */
  nameForNew({ cluster }: Clustered): string | undefined {
    return this.options.isSharedForAll ? undefined : cluster;
  }

  /** The cluster of this name, which is made if it does not exist; undefined: the shared one. */
  async of(name: string | undefined): Promise<SitesCluster> {
    if (name !== undefined) return (await this.openOwn(name)).cluster;
    const { shared } = this.options;
    if (shared === null)
      throw new SiteHostError('internal', 'the database is in a Postgres that SITES_DATABASE_URL does not name');
    return shared;
  }

  /** The clusters in which a site may have databases. */
  async allOf({ cluster: name }: Clustered): Promise<SitesCluster[]> {
    const { shared } = this.options;
    const isThere = name !== undefined && (this.own.has(name) || existsSync(this.folderOf(name)));
    return [...(shared === null ? [] : [shared]), ...(isThere ? [await this.of(name)] : [])];
  }

  /** The clusters that run now, with their names and their places on this machine. */
  running(): { name: string | undefined; place: SitesCluster['place'] }[] {
    const { shared } = this.options;
    const own = [...this.opened].map(([name, { cluster }]) => ({ name, place: cluster.place }));
    return shared === null ? own : [{ name: undefined, place: shared.place }, ...own];
  }

  /** Call it when a site has been removed from the cluster. */
  async removeIfEmpty({ cluster: name }: Clustered): Promise<void> {
    if (name === undefined) return;
    const opening = this.own.get(name);
    const own = await opening?.catch(() => undefined);
    if (own === undefined || !(await own.cluster.isEmpty()) || this.own.get(name) !== opening) return;
    this.own.delete(name);
    this.opened.delete(name);
    const removal = own.remove().finally(() => this.removals.delete(name));
    this.removals.set(name, removal);
    await removal;
  }

  /**
   * Checks the shared cluster only: an organisation's cluster that does not answer must not stop this host for the
   * others.
   */
  async check(): Promise<void> {
    await this.options.shared?.check();
  }

  async close(): Promise<void> {
    const { shared } = this.options;
    const opened = await Promise.allSettled(this.own.values());
    await Promise.all(opened.flatMap((found) => (found.status === 'fulfilled' ? [found.value.close()] : [])));
    await shared?.close();
  }

  private openOwn(name: string): Promise<OwnCluster> {
    const known = this.own.get(name);
    if (known !== undefined) return known;
    const { name: hostName, accounts, log } = this.options;
    const open = async (): Promise<OwnCluster> => {
      await this.removals.get(name)?.catch(() => undefined);
      return OwnCluster.open({
        folder: this.folderOf(name),
        name: hostName,
        accounts,
        log: log.child({ cluster: name }),
      });
    };
    const opening = open();
    this.own.set(name, opening);
    opening.then(
      (own) => this.opened.set(name, own),
      () => this.own.delete(name),
    );
    return opening;
  }

  private folderOf(name: string): string {
    return path.join(this.options.sitesDir, 'clusters', name);
  }
}
