import { randomBytes } from 'node:crypto';
import { readdir } from 'node:fs/promises';
import path from 'node:path';
import type { Accounts } from '@drydock/agent/host';
import { SiteHostError } from '@drydock/agent/site';
import { type Engine, listEngines } from '@drydock/mysql';
import { errorCodeOf } from '@drydock/process';
import type { Log } from '@drydock/service/telemetry';
import type { SiteRecord } from '../on-disk/site-folder';
import { MariadbDatabase, mariadbDatabase, pagesAccount, siteAccount } from './mariadb-database';
import { MariadbEndpoint } from './mariadb-endpoint';
import type { DatabasePlace, EndpointOptions, EndpointPlace, ReleaseDatabase, SiteDatabases } from './release-database';

export interface MariadbDatabasesOptions {
  sitesDir: string;
  accounts: Accounts;
  onStart: (child: { process: { pid: number }; exited: Promise<unknown> }, siteId: string) => void;
  log: Log;
}

type Settled = NonNullable<SiteRecord['mariadb']>;

/**
 * Runs a MariaDB server for each database, because sessions of one server share its locks, memory and connections, and
 * because a dump contains everything that the server has. Every server calls its database `site`, because a customer's
 * views and routines contain the name and must work in every release.
 */
export class MariadbDatabases implements SiteDatabases {
  private readonly options: MariadbDatabasesOptions;
  private readonly opened = new Map<string, MariadbDatabase>();

  constructor(options: MariadbDatabasesOptions) {
    this.options = options;
  }

  /** The newest MariaDB of this machine; null when there is none. */
  async newest(): Promise<Engine | null> {
    return (await listEngines()).findLast(({ flavour }) => flavour === 'mariadb') ?? null;
  }

  async choose(): Promise<Settled> {
    const engine = await this.newest();
    if (engine === null)
      throw new SiteHostError('database_not_offered', 'there is no MariaDB: npm run engines -- mariadb@11.8');
    return { version: engine.version, account: await this.options.accounts.allocate() };
  }

  completeRecord(record: SiteRecord): SiteRecord {
    return record;
  }

  placeFor(record: SiteRecord): DatabasePlace {
    return { database: `${record.role}_${randomBytes(6).toString('hex')}` };
  }

  async create(record: SiteRecord, place: DatabasePlace): Promise<MariadbDatabase> {
    const database = this.openNow(record, place.database);
    await database.ensureAccount();
    return database;
  }

  async open(record: SiteRecord, place: DatabasePlace): Promise<ReleaseDatabase> {
    return this.openNow(record, place.database);
  }

  async dropOthers(record: SiteRecord, named: ReadonlySet<string>): Promise<void> {
    const others = (await this.listNames()).filter((name) => name.startsWith(`${record.role}_`) && !named.has(name));
    for (const name of others) await this.openNow(record, name).drop();
  }

  dropAll(record: SiteRecord): Promise<void> {
    return this.dropOthers(record, new Set());
  }

  openEndpoint(options: EndpointOptions): MariadbEndpoint {
    return new MariadbEndpoint(options);
  }

  urlOf({ password }: SiteRecord, { host, port }: EndpointPlace): string {
    return `mysql://${siteAccount}:${password}@${host}:${port}/${mariadbDatabase}`;
  }

  pagesUrlOf(_record: SiteRecord, _at: EndpointPlace, { name }: ReleaseDatabase, door: string | null): string {
    const password = this.opened.get(name)?.pagesPassword ?? '';
    const socket = encodeURIComponent(door ?? '');
    return `mysql://${pagesAccount}:${password}@localhost/${mariadbDatabase}?socketPath=${socket}`;
  }

  async close(): Promise<void> {
    await Promise.all([...this.opened.values()].map((database) => database.close()));
  }

  private openNow(record: SiteRecord, name: string): MariadbDatabase {
    const known = this.opened.get(name);
    if (known !== undefined) return known;
    const { site_id: siteId, password, mariadb } = record;
    if (mariadb === undefined) throw new Error(`site ${siteId} has no MariaDB`);
    const { onStart, log } = this.options;
    const database = new MariadbDatabase({
      ...{ name, siteId, password, ...mariadb },
      folder: path.join(this.folder, name),
      onStart: (child) => onStart(child, siteId),
      onDropped: () => this.opened.delete(name),
      log: log.child({ site_id: siteId, database: name }),
    });
    this.opened.set(name, database);
    return database;
  }

  private get folder(): string {
    return path.join(this.options.sitesDir, 'mariadb');
  }

  private async listNames(): Promise<string[]> {
    try {
      return await readdir(this.folder);
    } catch (error) {
      if (errorCodeOf(error) === 'ENOENT') return [];
      throw error;
    }
  }
}
