import { createAuditDelivery } from '@drydock/service-kit/audit-delivery';
import { createHealthServer } from '@drydock/service-kit/health-server';
import { createIdempotencyPurge } from '@drydock/service-kit/idempotency-purge';
import { createLog, type Log } from '@drydock/service-kit/log';
import { createPager } from '@drydock/service-kit/paging';
import { deriveKey } from '@drydock/service-kit/secrets';
import { createService, type Service } from '@drydock/service-kit/service';
import { createLifetime, type Lifetime } from '@drydock/service-kit/shutdown';
import { createSiteHostClient } from '@drydock/site-host/client';
import { createDispatcher } from '@drydock/workflow/dispatcher';
import { createEngine } from '@drydock/workflow/engine';
import { createListener } from '@drydock/workflow/listener';
import { openBackupStorage } from './compose-backups';
import { hasSshHost, openSshHosts, sshModesOf } from './compose-ssh';
import { hasVendor, openVendors } from './compose-vendor';
import type { ServerConfig, WorkerConfig } from './config';
import { type HostingDatabase, openDatabase } from './database.store';
import { composeOffsiteDrivers, composeOffsiteReaders } from './offsite/compose-offsite';
import { createProofReader } from './proofs/proof-reader';
import { localDrillProbe } from './providers/drill-probe.local';
import { localSiteHost, localSiteHostReader } from './providers/site-host.local';
import { sshSiteHost, sshSiteHostReader } from './providers/site-host.ssh';
import { vendorSiteHost, vendorSiteHostReader } from './providers/site-host.vendor';
import { routes } from './routes';
import { keepSchedules } from './schedules';
import { workflows } from './workflows';

/** Both processes' name for the queue and for the tokens of the gateway. */
const serviceName = 'hosting';

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
  database: HostingDatabase;
}

function lay(config: ServerConfig | WorkerConfig): Foundation {
  const log = createLog({ service: config.SERVICE_NAME, level: config.LOG_LEVEL });
  const lifetime = createLifetime(log);
  const database = openDatabase(config.DATABASE_URL, { max: 10, applicationName: config.SERVICE_NAME });
  lifetime.onClose('database', () => database.close());
  return { log, lifetime, database };
}

const isUp = (database: HostingDatabase) => ({ database: () => database.sql().query('SELECT 1') });

/** The process that answers: it looks at the world through readers and writes to its own database only. */
export function composeApi(config: ServerConfig): ApiProcess {
  const { log, lifetime, database } = lay(config);
  const listener = createListener({ connectionString: config.DATABASE_URL, log });
  lifetime.onClose('listener', () => listener.close());
  const dispatcher = createDispatcher({ database, queueUrl: config.QUEUE_URL, queueName: serviceName, log });
  lifetime.onClose('dispatcher', () => dispatcher.close());
  const client = createSiteHostClient({ url: config.SITE_HOST_URL, secret: config.SITE_HOST_SECRET });
  lifetime.onClose('site-host', () => client.close());
  const vendorTimelines = openVendors(config, lifetime);
  const backupStorage = openBackupStorage(config, lifetime);
  const sshHosts = openSshHosts(config, lifetime);
  const context = {
    database,
    listener,
    pager: createPager(deriveKey(config.SERVICE_SECRET, 'cursor')),
    siteHosts: {
      local: localSiteHostReader(client),
      ...(hasVendor(vendorTimelines) ? { vendor: vendorSiteHostReader } : {}),
      ...(hasSshHost(sshHosts) ? { ssh: sshSiteHostReader(sshHosts) } : {}),
    },
    sshModes: sshModesOf(sshHosts),
    vendorTimelines,
    backupStorage,
    proofs: createProofReader(database, backupStorage),
    offsite: composeOffsiteReaders(config),
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
  const client = createSiteHostClient({ url: config.SITE_HOST_URL, secret: config.SITE_HOST_SECRET });
  lifetime.onClose('site-host', () => client.close());
  const archiveKey = Buffer.from(config.ARCHIVE_KEY, 'hex');
  const vendorTimelines = openVendors(config, lifetime);
  const vendor = hasVendor(vendorTimelines) ? { vendor: vendorSiteHost(vendorTimelines) } : {};
  const sshHosts = openSshHosts(config, lifetime);
  const context = {
    database,
    siteHosts: {
      local: localSiteHost({ client, archiveKey }),
      ...vendor,
      ...(hasSshHost(sshHosts) ? { ssh: sshSiteHost(sshHosts, archiveKey) } : {}),
    },
    vendorTimelines,
    vendorPollMs: config.VENDOR_POLL_MS,
    vendorWatchMs: config.VENDOR_WATCH_MS,
    backupStorage: openBackupStorage(config, lifetime),
    offsite: composeOffsiteDrivers(config),
    drillProbe: localDrillProbe(client),
    controlEnd: () => new Date(Date.now() + config.CANARY_CONTROL_SECONDS * 1_000),
    archiveKey,
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
      const schedules = keepSchedules(database, log);
      lifetime.onClose('schedules', async () => schedules.stop());
      engine.start();
      lifetime.onClose('engine', () => engine.stop(), 15_000);
      return health.listen(config.PORT, config.HOST);
    },
  };
}

function assertConsuming(isConsuming: boolean): void {
  if (!isConsuming) throw new Error('the queue has delivered nothing for a while');
}
