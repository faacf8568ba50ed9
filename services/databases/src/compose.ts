import { createDatabaseHostClient, createDatabaseHostReaderClient } from '@drydock/agent/clients';
import { createIdempotencyPurge, keepWatchingStorage } from '@drydock/service/effects';
import { type ApiProcess, composeApiProcess, createPager } from '@drydock/service/http';
import { deriveKeys, layFoundation, type Process, secretBuffers } from '@drydock/service/process';
import { composeWorkerProcess, connectWorkflows } from '@drydock/workflow/http';
import type { ServerConfig, WorkerConfig } from './config';
import { openDatabase } from './context/database.store';
import { databasePasswords } from './context/database-password';
import { watchedStorage } from './databases/storage';
import { localBackupStorage } from './providers/backup-storage.local';
import { localDatabaseProvider, localDatabaseReader } from './providers/database-provider.local';
import { routes } from './routes';
import { keepEndingForgottenMoves } from './upgrades/forgotten-moves';
import { workflows } from './workflows';

/** The name of the service in tokens, and the name of its queue. */
const serviceName = 'databases';

/**
 * The end of an SQL statement that counts the databases of an organisation towards its limit. Databases that failed or
 * were deleted do not count.
 */
const databasesCounted =
  "FROM managed_databases WHERE org_id = $1::uuid AND mode = $2::text::mode AND status NOT IN ('failed', 'deleted')";

/** The process that answers requests. It reads from the database agent and changes nothing there. */
export function composeApi(config: ServerConfig): ApiProcess {
  const foundation = layFoundation(config, openDatabase);
  const { log, lifetime, database } = foundation;
  const { connected, changed } = connectWorkflows(foundation, config, serviceName);
  const host = createDatabaseHostReaderClient({
    url: config.DATABASE_HOST_URL,
    secret: config.DATABASE_HOST_READER_SECRET,
  });
  lifetime.onClose('database-host', () => host.close());
  const context = {
    database,
    ...connected,
    pager: createPager(deriveKeys(config.SERVICE_SECRET, 'cursor')),
    quota: { counted: databasesCounted, usualMax: config.DATABASES_PER_ORGANISATION },
    provider: localDatabaseReader(host),
    passwords: databasePasswords(config.SERVICE_SECRET),
  };
  return composeApiProcess(foundation, config, {
    name: serviceName,
    changed,
    routes: routes(context),
    beside: { 'idempotency purge': createIdempotencyPurge(database, log) },
  });
}

/**
 * The process that runs the workflows. Only this process has the whole provider, the storage of database backups and
 * the key of their archives.
 */
export function composeWorker(config: WorkerConfig): Process {
  const foundation = layFoundation(config, openDatabase);
  const { lifetime, database, log } = foundation;
  const client = createDatabaseHostClient({ url: config.DATABASE_HOST_URL, secret: config.DATABASE_HOST_SECRET });
  lifetime.onClose('database-host', () => client.close());
  const archiveKey = secretBuffers(config.ARCHIVE_KEY);
  const context = {
    database,
    provider: localDatabaseProvider({ client, archiveKey }),
    backupStorage: localBackupStorage(config.BACKUPS_DIR),
    passwords: databasePasswords(config.SERVICE_SECRET),
    archiveKey,
    oldInstanceSeconds: config.OLD_INSTANCE_HOURS * 3_600,
    verifyRestoreSeconds: Math.round(config.VERIFY_RESTORE_DAYS * 86_400),
    slowMs: config.SANDBOX_SLOW_MS,
    now: () => new Date(),
  };
  const schedule = (): void => {
    const moves = keepEndingForgottenMoves(context, log);
    lifetime.onClose('forgotten moves', () => moves.stop());
    const storage = keepWatchingStorage(watchedStorage(database, context.provider), log);
    lifetime.onClose('storage of databases', () => storage.stop());
  };
  return composeWorkerProcess(foundation, config, { name: serviceName, workflows, context, schedule });
}
