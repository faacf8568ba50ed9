import { createHash } from 'node:crypto';
import { existsSync } from 'node:fs';
import { mkdir } from 'node:fs/promises';
import path from 'node:path';
import type { Accounts } from '@drydock/agent/host';
import { SiteHostError } from '@drydock/agent/site';
import { customerSessionBytes, defaultMajor, KeptPostgres, type PostgresServer } from '@drydock/postgres';
import { readIfThere, writeDurably } from '@drydock/process';
import type { Log } from '@drydock/service/telemetry';
import { z } from 'zod';
import type { SiteRecord } from '../on-disk/site-folder';
import { SitesCluster } from './sites-cluster';
import { WokenServer } from './woken-server';

const connectionsMax = 100;
/**
 * The number of locks that a cluster can hold. It is large, because a backup locks every table of a site at once. The
 * lock table takes 11 MB of the cluster's memory.
 */
const locksMax = 80_000;

/** Buffers take memory only once they are used. So the cluster of an idle organisation takes little memory. */
const settings: Readonly<Record<string, string>> = {
  max_connections: String(connectionsMax),
  max_locks_per_transaction: String(locksMax / connectionsMax),
  shared_buffers: '32MB',
  min_wal_size: '32MB',
  // The queue of NOTIFY may take 128 MB of the disk that all sites share. Postgres' default is 8 GB.
  max_notify_queue_pages: '16384',
  // No server replicates this cluster.
  wal_level: 'replica',
  max_wal_senders: '0',
  max_replication_slots: '0',
  max_logical_replication_workers: '0',
};

/**
 * The content of cluster.json. No other cluster has the same account. The account determines the port number in the
 * name of the socket. The server runs under the account only if the site agent is root.
 */
const recordSchema = z.strictObject({ major: z.int(), account: z.int() });

export interface OwnClusterOptions {
  folder: string;
  /** A name that only this site agent uses, the same at every start. */
  name: string;
  accounts: Accounts;
  log: Log;
}

/**
 * A cluster that the site agent runs for the sites of one organisation. All sessions of a server share its locks,
 * transaction ids and queue of NOTIFY, so an organisation can use up only its own. The cluster stops after some time
 * without use, and starts at the next use. It ends with the site agent, because its sessions go through the agent.
 */
export class OwnCluster {
  private readonly postgres: KeptPostgres;
  private readonly woken: WokenServer;
  private server: PostgresServer | null = null;
  private known: SitesCluster | null = null;

  private constructor({ folder, log }: OwnClusterOptions, { major, account }: z.infer<typeof recordSchema>) {
    this.postgres = new KeptPostgres({
      folder,
      major,
      log,
      serverOptions: () => ({
        port: socketNumber(account),
        account,
        isSocketOnly: true,
        sessionBytes: customerSessionBytes,
        settings,
      }),
      onUp: async (server) => {
        this.server = server;
      },
      onDown: () => undefined,
    });
    this.woken = new WokenServer({ server: this.postgres, isUnused: () => this.cluster.isUnused(), folder, log });
  }

  /** Opens the cluster. Makes it if it does not exist. */
  static async open(options: OwnClusterOptions): Promise<OwnCluster> {
    const own = new OwnCluster(options, await ensureRecord(options));
    try {
      await own.woken.wake();
      if (own.server === null) throw new Error('a server that is up says where');
      const { adminUrl, socketFolder } = own.server;
      own.known = new SitesCluster(adminUrl, socketFolder, options.name, own.woken);
      await own.known.open();
      return own;
    } catch (error) {
      await own.close();
      throw error;
    }
  }

  get cluster(): SitesCluster {
    if (this.known === null) throw new Error('the cluster has not been opened');
    return this.known;
  }

  stopIfUnused(nowMs?: number): Promise<void> {
    return this.woken.stopIfUnused(nowMs);
  }

  async close(): Promise<void> {
    await this.woken.close();
    await this.known?.close();
  }

  async remove(): Promise<void> {
    await this.close();
    await this.postgres.remove();
  }
}

/**
 * Returns the port number in the name of a cluster's socket. The cluster listens only at the socket, not at this port.
 * CpuShares tells servers apart by this number, because servers in different boxes may have the same process id in
 * their lock files.
 */
export const socketNumber = (account: number): number => 10_000 + (account % 50_000);

async function ensureRecord({ folder, accounts }: OwnClusterOptions): Promise<z.infer<typeof recordSchema>> {
  const file = path.join(folder, 'cluster.json');
  const text = await readIfThere(file);
  if (text !== null) return recordSchema.parse(JSON.parse(text));
  await mkdir(folder, { recursive: true, mode: 0o711 });
  const record = { major: defaultMajor, account: await accounts.allocate() };
  await writeDurably(file, `${JSON.stringify(record)}\n`);
  return record;
}

export interface SitesClustersOptions {
  sitesDir: string;
  /** A name that only this site agent uses, the same at every start. */
  name: string;
  /** The operator's server for all sites. Null if there is none. */
  shared: SitesCluster | null;
  /** Whether new databases are made in the shared cluster. If not, it serves only the databases that it already has. */
  isSharedForAll: boolean;
  accounts: Accounts;
  log: Log;
}

type Clustered = Pick<SiteRecord, 'cluster'>;

/**
 * All clusters with databases of this agent's sites: one for each organisation, and a shared one if the operator has
 * configured it. A release names the cluster of its database. A release that names none has its database in the shared
 * cluster.
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

  /** Returns the name of an organisation's cluster, or undefined if all sites share one. */
  nameFor(organisation: string): string | undefined {
    if (this.options.isSharedForAll) return undefined;
    return /^[\w-]{1,64}$/.test(organisation) ? organisation : createHash('sha256').update(organisation).digest('hex');
  }

  /** The name of the cluster for a site's new databases. */
  nameForNew({ cluster }: Clustered): string | undefined {
    return this.options.isSharedForAll ? undefined : cluster;
  }

  /** Opens the cluster of this name, and makes it if it does not exist. Undefined stands for the shared cluster. */
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

  /**
   * Lists the shared cluster and the clusters that have been opened, even if they sleep now, with their places on this
   * machine.
   */
  running(): { name: string | undefined; place: SitesCluster['place'] }[] {
    const { shared } = this.options;
    const own = [...this.opened].map(([name, { cluster }]) => ({ name, place: cluster.place }));
    return shared === null ? own : [{ name: undefined, place: shared.place }, ...own];
  }

  /** Removes the cluster if it is empty. Call this when a site has been removed from the cluster. */
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
   * Checks only the shared cluster. A cluster of one organisation that does not answer must not make the site agent
   * unready for the others.
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
