import type { Sql } from '../database/sql';
import { createLog, type Log } from '../telemetry/log';
import type { ApiConfig, ServiceConfig } from './config';
import { closeOnSignal, createLifetime, type Lifetime, shutdownLimitMs } from './shutdown';

/** The parts that every process of a service has. */
export interface Foundation<Database> {
  log: Log;
  lifetime: Lifetime;
  database: Database;
}

/**
 * The most connections in a process's pool. A process with a queue opens one more connection outside the pool, on which
 * it listens for changes.
 */
export const connectionsMax = 10;

/**
 * Opens the log, the lifetime and the database of a process, before all its other resources. The database is closed
 * last. `openDatabase` is the service's own function, because its Prisma client is generated.
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

/**
 * The checks that decide whether a process is ready, by name. A check that rejects or takes longer than a second has
 * failed.
 */
export type ReadyChecks = Readonly<Record<string, () => Promise<unknown>>>;

/** A process that is composed but not started yet. */
export interface Process {
  log: Log;
  lifetime: Lifetime;
  /** Resolves with the address at which the process listens. */
  start(): Promise<{ url: string; port: number }>;
}

/**
 * Runs a process from its start to the signal that ends it. If it cannot start, it logs the reason and exits with 1.
 */
export function runProcess({ log, lifetime, start }: Process): void {
  closeOnSignal(lifetime, log);
  start().then(
    ({ url }) => log.info({ url }, 'listening'),
    (error: unknown) => {
      log.fatal({ err: error }, 'could not start');
      process.exit(1);
    },
  );
}

/**
 * Runs a command for a person. The exit code is what `main` resolves with. A failure is printed on stderr, and the exit
 * code is 1.
 */
export function runCommand(main: () => Promise<number>): void {
  main().then(
    (code) => process.exit(code),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.message : String(error)}\n`);
      process.exit(1);
    },
  );
}
