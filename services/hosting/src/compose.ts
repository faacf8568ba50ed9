import { createSiteHostClient, createSiteHostReaderClient } from '@drydock/agent/site/client';
import { createIdempotencyPurge } from '@drydock/service/effects/idempotency-purge';
import { createPager } from '@drydock/service/http/paging';
import { type ApiProcess, composeApiProcess } from '@drydock/service/process/api-process';
import { layFoundation } from '@drydock/service/process/foundation';
import type { Process } from '@drydock/service/process/run-process';
import { deriveKeys, secretBuffers } from '@drydock/service/process/secrets';
import { composeWorkerProcess } from '@drydock/workflow/http/worker-process';
import { connectWorkflows } from '@drydock/workflow/http/workflow-context';
import { openBackupReader, openBackupStorage } from './compose-backups';
import { hasSshHost, openSshHosts, sshModesOf } from './compose-ssh';
import { hasVendor, openVendorReaders, openVendors } from './compose-vendor';
import type { ServerConfig, WorkerConfig } from './config';
import { openDatabase } from './database.store';
import { createDomainProofs } from './domains/domain-proof';
import { composeOffsiteDrivers, composeOffsiteReaders, credentialKeysOf } from './offsite/compose-offsite';
import { createResealing } from './offsite/reseal-credentials';
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

/** Sites whose creation failed do not count. */
const sitesCounted = "FROM sites WHERE org_id = $1::uuid AND mode = $2::text::mode AND status <> 'failed'";

/** The process that answers requests: it reads the outside world, and writes only to its own database. */
export function composeApi(config: ServerConfig): ApiProcess {
  const foundation = layFoundation(config, openDatabase);
  const { log, lifetime, database } = foundation;
  const connected = connectWorkflows(foundation, config, serviceName);
  const client = createSiteHostReaderClient({ url: config.SITE_HOST_URL, secret: config.SITE_HOST_READER_SECRET });
  lifetime.onClose('site-host', () => client.close());
  const vendorTimelines = openVendorReaders(config, lifetime);
  const backupStorage = openBackupReader(config, lifetime);
  const sshHosts = openSshHosts(config, lifetime);
  const context = {
    database,
    ...connected,
    pager: createPager(deriveKeys(config.SERVICE_SECRET, 'cursor')),
    siteHosts: {
      local: localSiteHostReader(client),
      ...(hasVendor(vendorTimelines) ? { vendor: vendorSiteHostReader } : {}),
      ...(hasSshHost(sshHosts) ? { ssh: sshSiteHostReader(sshHosts) } : {}),
    },
    sshModes: sshModesOf(sshHosts),
    vendorTimelines,
    backupStorage,
    proofs: createProofReader(database, backupStorage),
    quota: { counted: sitesCounted, usualMax: config.SITES_PER_ORGANISATION },
    domainProofs: createDomainProofs({
      keys: deriveKeys(config.SERVICE_SECRET, 'domain-proof'),
      isRequired: config.DOMAIN_PROOF === 'required',
      nameServers: config.DOMAIN_NAME_SERVERS?.split(',') ?? [],
    }),
    offsite: composeOffsiteReaders(config),
  };
  return composeApiProcess(foundation, config, {
    name: serviceName,
    routes: routes(context),
    beside: {
      'idempotency purge': createIdempotencyPurge(database, log),
      'sealing anew': createResealing(database, credentialKeysOf(config), log),
    },
  });
}

/** The process that works: the only one with drivers and with the key of the archives. */
export function composeWorker(config: WorkerConfig): Process {
  const foundation = layFoundation(config, openDatabase);
  const { log, lifetime, database } = foundation;
  const client = createSiteHostClient({ url: config.SITE_HOST_URL, secret: config.SITE_HOST_SECRET });
  lifetime.onClose('site-host', () => client.close());
  const archiveKey = secretBuffers(config.ARCHIVE_KEY);
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
  return composeWorkerProcess(foundation, config, {
    name: serviceName,
    workflows,
    context,
    schedule: () => {
      const schedules = keepSchedules(database, log);
      lifetime.onClose('schedules', async () => schedules.stop());
    },
  });
}
