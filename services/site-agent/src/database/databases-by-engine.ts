import type { SiteDatabase } from '@drydock/contracts/hosting/sites';
import type { SiteRecord } from '../on-disk/site-folder';
import type { MariadbDatabases } from './mariadb-databases';
import type { PostgresDatabases } from './postgres-databases';
import type { SiteDatabases } from './release-database';

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

  /** The engines that a new site can choose here. */
  async offered(): Promise<SiteDatabase[]> {
    return (await this.mariadb.newest()) === null ? ['postgres'] : ['postgres', 'mysql'];
  }

  /** The fields for the database in a new site's record. Throws `database_not_offered`. */
  async choose(wanted: SiteDatabase): Promise<Pick<SiteRecord, 'mariadb'>> {
    return wanted === 'postgres' ? {} : { mariadb: await this.mariadb.choose() };
  }
}
