import type { Sql } from '../database/sql';
import { createLog, type Log } from '../telemetry/log';
import type { ApiConfig, ServiceConfig } from './config';
import { createLifetime, type Lifetime, shutdownLimitMs } from './shutdown';

/** The parts that every process of a service has. */
export interface Foundation<Database> {
  log: Log;
  lifetime: Lifetime;
  database: Database;
}

const connectionsMax = 10;

/**
 * Opens the log, lifetime and database of a process. They are opened first and closed last. `openDatabase` is the
 * service's own function, because its Prisma client is generated.
 */
export function layFoundation<Database extends { close(): Promise<void> }>(
  config: Pick<ServiceConfig, 'SERVICE_NAME' | 'LOG_LEVEL' | 'DATABASE_URL'> & Partial<ApiConfig>,
  openDatabase: (url: string, limits: { max: number; applicationName: string }) => Database,
): Foundation<Database> {
  const log = createLog({ service: config.SERVICE_NAME, level: config.LOG_LEVEL });
  const lifetime = createLifetime(log, shutdownLimitMs + (config.DRAIN_SECONDS ?? 0) * 1_000);
  const database = openDatabase(config.DATABASE_URL, { max: connectionsMax, applicationName: config.SERVICE_NAME });
  lifetime.onClose('database', () => database.close());
  return { log, lifetime, database };
}

/** The check that the database answers. A process without its database is not ready. */
export const databaseReady = (database: { sql(): Sql }): ReadyChecks => ({
  database: () => database.sql().query('SELECT 1'),
});

/** The conditions of readiness, by name. A check that rejects or takes longer than a second has failed. */
export type ReadyChecks = Readonly<Record<string, () => Promise<unknown>>>;
