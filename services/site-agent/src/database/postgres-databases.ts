import { randomBytes } from 'node:crypto';
import type { Newcomers } from '@drydock/agent/host';
import { openSession } from '@drydock/postgres';
import { timeLimit } from '@drydock/process';
import pg from 'pg';
import type { SiteRecord } from '../on-disk/site-folder';
import { DatabaseEndpoint, endpointDatabase } from './database-endpoint';
import type {
  DatabasePlace,
  DatabaseUsage,
  EndpointOptions,
  EndpointPlace,
  JobAccess,
  ReaderAccess,
  ReleaseDatabase,
  ServerAddress,
  SiteDatabases,
  SqlProbe,
} from './release-database';
import type { SitesCluster } from './sites-cluster';
import type { SitesClusters } from './sites-clusters';

/**
 * Keeps databases in clusters of Postgres: one cluster for each organisation, and a shared one if the operator has
 * configured it.
 */
export class PostgresDatabases implements SiteDatabases {
  private readonly clusters: SitesClusters;

  constructor(clusters: SitesClusters) {
    this.clusters = clusters;
  }

  /**
   * Adds the cluster to the record of a site that has none yet. The cluster stays the same if the site's organisation
   * changes, because the site's role is in that cluster.
   */
  completeRecord(record: SiteRecord, organisation: string): SiteRecord {
    const cluster = record.cluster ?? this.clusters.nameFor(organisation);
    return cluster === record.cluster ? record : { ...record, cluster };
  }

  placeFor(record: SiteRecord): DatabasePlace {
    return { database: `${record.role}_${randomBytes(6).toString('hex')}`, cluster: this.clusters.nameForNew(record) };
  }

  async create(record: SiteRecord, place: DatabasePlace): Promise<ReleaseDatabase> {
    const cluster = await this.clusters.of(place.cluster);
    // The site may never have had a database in this cluster, so its role may be missing.
    await cluster.ensureRole(record.role, record.password);
    await cluster.createDatabase(place.database, record.role);
    return new PostgresDatabase(cluster, place.database, record);
  }

  async open(record: SiteRecord, place: DatabasePlace): Promise<ReleaseDatabase> {
    return new PostgresDatabase(await this.clusters.of(place.cluster), place.database, record);
  }

  async dropOthers(record: SiteRecord, named: ReadonlySet<string>): Promise<void> {
    for (const cluster of await this.clusters.allOf(record)) {
      const others = (await cluster.listDatabases(record.role)).filter((database) => !named.has(database));
      for (const database of others) await cluster.dropDatabase(database);
    }
  }

  async dropAll(record: SiteRecord): Promise<void> {
    await this.dropOthers(record, new Set());
    for (const cluster of await this.clusters.allOf(record)) await cluster.dropRole(record.role);
    await this.clusters.removeIfEmpty(record);
  }

  openEndpoint(options: EndpointOptions): DatabaseEndpoint {
    return new DatabaseEndpoint(options);
  }

  urlOf({ role, password }: SiteRecord, { host, port }: EndpointPlace, database?: ReleaseDatabase): string {
    return `postgresql://${role}:${password}@${host}:${port}/${database?.name ?? endpointDatabase}`;
  }

  /** Pages need no socket of their own, because the name of the database in the URL already determines the release. */
  pagesUrlOf(record: SiteRecord, at: EndpointPlace, database: ReleaseDatabase): string {
    return this.urlOf(record, at, database);
  }
}

export class PostgresDatabase implements ReleaseDatabase {
  readonly worksAlone = false;
  readonly name: string;
  private readonly cluster: SitesCluster;
  private readonly site: Pick<SiteRecord, 'site_id' | 'role' | 'password'>;

  constructor(cluster: SitesCluster, name: string, site: SiteRecord) {
    this.cluster = cluster;
    this.name = name;
    this.site = site;
  }

  wake(): Promise<void> {
    return this.cluster.wake();
  }

  get address(): ServerAddress {
    return this.cluster.address;
  }

  get newcomers(): Newcomers {
    return this.cluster.newcomers;
  }

  takePlace(end: () => void): (() => void) | null {
    return this.cluster.budget.take(this.site.site_id, end);
  }

  ensureAccount(): Promise<void> {
    return this.cluster.ensureRole(this.site.role, this.site.password);
  }

  async serve(): Promise<void> {}

  leave(): Promise<void> {
    return this.cluster.endSessions(this.name);
  }

  endSessions(pids: number[]): Promise<void> {
    return this.cluster.endSessionsOf(this.site.role, this.name, pids);
  }

  endSiteSessions(): Promise<void> {
    return this.cluster.endAllSessionsOf(this.site.role, this.name);
  }

  async readUsage(): Promise<DatabaseUsage | null> {
    const found = await this.cluster.readUsage(this.site.role, this.name);
    return found && { ...found, pid: null };
  }

  keepReadOnly(isOn: boolean): Promise<void> {
    return this.cluster.keepReadOnly(this.site.role, this.name, isOn);
  }

  async probe(deadlineMs: number): Promise<SqlProbe> {
    const { role, password } = this.site;
    try {
      await this.wake();
    } catch (error) {
      return { isAnswered: false, detail: `sql: ${error instanceof Error ? error.message : String(error)}` };
    }
    return probePostgres(this.cluster.directUrl(role, password, this.name), deadlineMs);
  }

  openReader(): Promise<ReaderAccess> {
    const { cluster, name } = this;
    return cluster.hold(async () => this.access(await cluster.transfer.readerUrl(name), null));
  }

  async openLoader(): Promise<JobAccess> {
    const { url, role } = await this.cluster.transfer.openLoader(this.name, this.site.role);
    return this.access(url, role);
  }

  closeLoader(): Promise<void> {
    return this.cluster.transfer.dropLoader(this.name);
  }

  drop(): Promise<void> {
    return this.cluster.dropDatabase(this.name);
  }

  private access(url: string, role: string | null): JobAccess {
    return { database: { engine: 'postgres', url, role }, socketFolder: this.cluster.socketFolder };
  }
}

/**
 * Probes with a session whose settings the site cannot change. With the site's own `search_path`, the query might call
 * a function of the site in place of the server's `count`, and its result could fill this process's memory. Never
 * throws.
 */
export async function probePostgres(url: string, deadlineMs: number): Promise<SqlProbe> {
  const signal = timeLimit(deadlineMs);
  try {
    const { client, close } = await openSession(url, { purpose: 'read', signal, applicationName: 'drydock probe' });
    try {
      await client.query('select count(*) from pg_catalog.pg_class');
      return { isAnswered: true, detail: null };
    } finally {
      await close();
    }
  } catch (thrown) {
    const error: unknown = signal.aborted ? signal.reason : thrown;
    const detail = `sql: ${error instanceof Error ? error.message : String(error)}`;
    return { isAnswered: error instanceof pg.DatabaseError && !isPassing(error.code ?? ''), detail };
  }
}

/**
 * Tells whether the server is starting, is stopping or has no connection left: an SQLSTATE that begins with 57P, 53 or
 * 08.
 */
const isPassing = (sqlState: string): boolean => /^(57P|53|08)/.test(sqlState);
