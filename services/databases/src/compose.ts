import { createDatabaseHostClient } from '@drydock/database-host/client';
import { createAuditDelivery } from '@drydock/service-kit/audit-delivery';
import { createHealthServer } from '@drydock/service-kit/health-server';
import { createIdempotencyPurge } from '@drydock/service-kit/idempotency-purge';
import { createLog, type Log } from '@drydock/service-kit/log';
import { createPager } from '@drydock/service-kit/paging';
import { deriveKey } from '@drydock/service-kit/secrets';
import { createService, type Service } from '@drydock/service-kit/service';
import { createLifetime, type Lifetime } from '@drydock/service-kit/shutdown';
import { createDispatcher } from '@drydock/workflow/dispatcher';
import { createEngine } from '@drydock/workflow/engine';
import { createListener } from '@drydock/workflow/listener';
import type { ServerConfig, WorkerConfig } from './config';
import { type DatabasesDatabase, openDatabase } from './database.store';
import { databasePasswords } from './databases/database-password';
import { localBackupStorage } from './providers/backup-storage.local';
import { localDatabaseProvider, localDatabaseReader } from './providers/database-provider.local';
import { routes } from './routes';
import { workflows } from './workflows';

/** Both processes' name for the queue and for the tokens of the gateway. */
const serviceName = 'databases';

export interface Process {
  log: Log;
  lifetime: Lifetime;
  /** Where it listens. */
  start(): Promise<{ url: string; port: number }>;
}

export interface ApiProcess extends Process {
  service: Service;
}

interface Foundation {
  log: Log;
  lifetime: Lifetime;
  database: DatabasesDatabase;
}

function lay(config: ServerConfig | WorkerConfig): Foundation {
  const log = createLog({ service: config.SERVICE_NAME, level: config.LOG_LEVEL });
  const lifetime = createLifetime(log);
  const database = openDatabase(config.DATABASE_URL, { max: 10, applicationName: config.SERVICE_NAME });
  lifetime.onClose('database', () => database.close());
  return { log, lifetime, database };
}

const isUp = (database: DatabasesDatabase) => ({ database: () => database.sql().query('SELECT 1') });
const openHost = ({ DATABASE_HOST_URL: url, DATABASE_HOST_SECRET: secret }: ServerConfig | WorkerConfig) =>
  createDatabaseHostClient({ url, secret });

/** The process that answers: it looks at the world through readers and writes to its own database only. */
export function composeApi(config: ServerConfig): ApiProcess {
  const { log, lifetime, database } = lay(config);
  const listener = createListener({ connectionString: config.DATABASE_URL, log });
  lifetime.onClose('listener', () => listener.close());
  const dispatcher = createDispatcher({ database, queueUrl: config.QUEUE_URL, queueName: serviceName, log });
  lifetime.onClose('dispatcher', () => dispatcher.close());
  const host = openHost(config);
  lifetime.onClose('database-host', () => host.close());
  const context = {
    database,
    listener,
    pager: createPager(deriveKey(config.SERVICE_SECRET, 'cursor')),
    provider: localDatabaseReader(host),
    passwords: databasePasswords(config.SERVICE_SECRET),
    ring: dispatcher.ring,
  };
  const service = createService({
    name: serviceName,
    routes: routes(context),
    database,
    tokenSecret: config.INTERNAL_TOKEN_SECRET,
    log,
    ready: isUp(database),
  });
  lifetime.onClose('http', () => service.close(), 15_000);
  const purge = createIdempotencyPurge(database, log);
  lifetime.onClose('idempotency purge', async () => purge.stop());
  return {
    log,
    lifetime,
    service,
    start: () => {
      purge.start();
      return service.listen(config.PORT, config.HOST);
    },
  };
}

/** The process that works: the only one with drivers and with the key of the archives. */
export function composeWorker(config: WorkerConfig): Process {
  const { log, lifetime, database } = lay(config);
  const client = openHost(config);
  lifetime.onClose('database-host', () => client.close());
  const archiveKey = Buffer.from(config.ARCHIVE_KEY, 'hex');
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
  const delivery = createAuditDelivery({
    database,
    keysUrl: config.KEYS_URL,
    secret: config.AUDIT_TOKEN_SECRET,
    service: serviceName,
    log,
  });
  const listener = createListener({ connectionString: config.DATABASE_URL, log });
  lifetime.onClose('listener', () => listener.close());
  const engine = createEngine({
    database,
    definitions: workflows(context),
    queueUrl: config.QUEUE_URL,
    queueName: serviceName,
    leaseSeconds: config.WORKFLOW_LEASE_SECONDS,
    sweepMs: config.WORKFLOW_SWEEP_MS,
    concurrency: config.WORKFLOW_CONCURRENCY,
    log,
    listener,
  });
  const ready = { ...isUp(database), queue: async () => assertConsuming(engine.isConsuming()) };
  const health = createHealthServer({ log, ready });
  lifetime.onClose('http', () => health.close());
  return {
    log,
    lifetime,
    start: () => {
      delivery.start();
      lifetime.onClose('audit delivery', () => delivery.stop());
      engine.start();
      lifetime.onClose('engine', () => engine.stop(), 15_000);
      return health.listen(config.PORT, config.HOST);
    },
  };
}

function assertConsuming(isConsuming: boolean): void {
  if (!isConsuming) throw new Error('the queue has delivered nothing for a while');
}
