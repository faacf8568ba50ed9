import type { CpuShares } from '@drydock/agent/host';
import type { SiteDatabase } from '@drydock/contracts/hosting/sites';
import type { BoxNetwork, Isolation } from '@drydock/process';
import type { Log } from '@drydock/service/telemetry';
import type { OutgoingPolicy } from '../apps/outgoing';
import type { PagePlaces } from '../content/page-places';
import type { MariadbDatabases } from '../database/mariadb-databases';
import type { PostgresDatabases } from '../database/postgres-databases';
import type { SiteDatabases } from '../database/release-database';
import type { SiteRecord } from '../on-disk/site-folder';
import type { SlowRemoval } from '../releases/slow-removal';
import type { VisitorLimits } from '../serving/forward-to-app';

/** The parts of the site agent that its sites share. */
export interface SiteContext {
  /** The address that the sites' ports listen at. */
  host: string;
  databases: DatabasesByEngine;
  removal: SlowRemoval;
  cpu: CpuShares;
  /** The organisations' shares of this machine for pages and applications. */
  places: PagePlaces;
  limits: VisitorLimits;
  /** The most bytes that a site's live files may take. The same limit applies separately to its live database. */
  diskBytes: number;
  isolation: Isolation;
  network: BoxNetwork;
  /** Decides where applications may connect to from a network of their own. */
  outgoing: OutgoingPolicy;
  /** Whether the operator lets applications run without isolation. */
  isRiskTaken: boolean;
  /**
   * Runs one change of a site at a time. When a job makes, publishes or discards a release, that is such a change too.
   */
  inTurn<T>(siteId: string, work: () => Promise<T>): Promise<T>;
  log: Log;
}

/** The databases of this agent's sites. The record of a site says which engine its databases have. */
export class DatabasesByEngine {
  private readonly postgres: PostgresDatabases;
  private readonly mariadb: MariadbDatabases;

  constructor(postgres: PostgresDatabases, mariadb: MariadbDatabases) {
    this.postgres = postgres;
    this.mariadb = mariadb;
  }

  of({ mariadb }: Pick<SiteRecord, 'mariadb'>): SiteDatabases {
    return mariadb === undefined ? this.postgres : this.mariadb;
  }

  /** The engines that a new site can choose on this machine. */
  async offered(): Promise<SiteDatabase[]> {
    return (await this.mariadb.newest()) === null ? ['postgres'] : ['postgres', 'mysql'];
  }

  /** Returns the fields of a new site's record that depend on its engine. Throws `database_not_offered`. */
  async choose(wanted: SiteDatabase): Promise<Pick<SiteRecord, 'mariadb'>> {
    return wanted === 'postgres' ? {} : { mariadb: await this.mariadb.choose() };
  }
}
