import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { createControlServer } from '@drydock/agent/control';
import { Accounts, CpuShares, DiskWatch, firstAccounts } from '@drydock/agent/host';
import { Ledger } from '@drydock/agent/jobs';
import { siteHostProtocol } from '@drydock/agent/site';
import { settleSuperuser } from '@drydock/postgres';
import { detectBoxNetwork, detectIsolation } from '@drydock/process';
import { tokenKeys } from '@drydock/service/access';
import { closeServer, listen } from '@drydock/service/http';
import { createLifetime, type Lifetime } from '@drydock/service/process';
import { createLog, type Log } from '@drydock/service/telemetry';
import { OutgoingPolicy } from './apps/outgoing';
import type { SiteHostConfig } from './config';
import { PagePlaces } from './content/page-places';
import { controlRoutes } from './control-routes';
import { MariadbDatabases } from './database/mariadb-databases';
import { PostgresDatabases } from './database/postgres-databases';
import { SitesCluster } from './database/sites-cluster';
import { SitesClusters } from './database/sites-clusters';
import { type RemovalPace, SlowRemoval } from './releases/slow-removal';
import { type VisitorLimits, visitorLimits } from './serving/forward-to-app';
import { HostedSites } from './sites/hosted-sites';
import { DatabasesByEngine } from './sites/site-context';

interface HostSettings {
  places?: PagePlaces;
  limits?: VisitorLimits;
  pace?: RemovalPace | undefined;
}

/**
 * Opens the shared database server (if one is configured), then the sites, and last the control port. So a caller who
 * reaches the port finds the sites served, except those that could not be opened within 15 s.
 */
export async function composeSiteHost(
  config: SiteHostConfig,
  { places = new PagePlaces(), limits = visitorLimits, pace }: HostSettings = {},
): Promise<{ lifetime: Lifetime; log: Log; url: string }> {
  const log = createLog({ service: config.SERVICE_NAME, level: config.LOG_LEVEL });
  const lifetime = createLifetime(log);
  const sitesDir = path.resolve(config.SITES_DIR);
  await mkdir(sitesDir, { recursive: true, mode: 0o711 });

  const accounts = new Accounts(sitesDir, firstAccounts.sites);
  const clusters = await openClusters({ config, sitesDir, accounts, log });
  lifetime.onClose('sites clusters', () => clusters.close(), 22_000);

  const isolation = await detectIsolation();
  const diskBytes = config.SITE_DISK_GB * 1e9;
  const removal = new SlowRemoval(sitesDir, isolation, log, { siteBytes: diskBytes, pace });
  lifetime.onClose('slow removal', () => removal.stop());
  await removal.resume();

  const ledger = new Ledger(sitesDir, 'site', () => new Date());
  const isRiskTaken = config.DRYDOCK_RUN_APPS_WITHOUT_ISOLATION !== undefined;
  if (isolation.kind === 'none')
    log.warn({ reason: isolation.reason, is_risk_taken: isRiskTaken }, 'sites cannot be kept apart on this machine');
  else log.info({ isolation: isolation.kind }, 'sites are kept apart');
  const network = await detectBoxNetwork();
  if (network.kind === 'machine')
    log.warn(
      { reason: network.reason },
      "applications share this machine's network: they reach its loopback and its private network",
    );
  else log.info('applications have a network of their own');
  const outgoing = new OutgoingPolicy(config.SITES_OUTGOING_ALLOW?.split(',') ?? []);
  const cpu = new CpuShares({
    clusters: () => {
      const users = sites.organisationsOfClusters();
      return clusters.running().flatMap(({ name, place }) => {
        const organisation = name === undefined ? null : (users.get(name) ?? null);
        return place === null ? [] : [{ ...place, organisation }];
      });
    },
    organisationOf: (role) => sites.organisationOf(role),
    cores: availableParallelism(),
    onError: (error) => log.warn({ err: error }, 'the CPU time of sites could not be sampled'),
  });
  const mariadb = new MariadbDatabases({
    sitesDir,
    accounts,
    onStart: (child, siteId) => cpu.watch(child, sites.organisationOfSite(siteId), 'serving'),
    log,
  });
  lifetime.onClose('MariaDBs of sites', () => mariadb.close(), 22_000);
  const context = {
    host: config.HOST,
    databases: new DatabasesByEngine(new PostgresDatabases(clusters), mariadb),
    removal,
    cpu,
    places,
    limits,
    diskBytes,
    isolation,
    network,
    outgoing,
    isRiskTaken,
    log,
  };
  const sites = new HostedSites(sitesDir, ledger, accounts, context);
  lifetime.onClose('sites', () => sites.close(), 12_000);
  await sites.open();
  cpu.start();
  lifetime.onClose('CPU shares', () => cpu.stop());
  const disk = new DiskWatch({
    tenants: () => sites.all(),
    ownerOf: (site) => site.organisation,
    onError: (error) => log.warn({ err: error }, 'what a site has on disk could not be counted'),
  });
  disk.start();
  lifetime.onClose('disk watch', () => disk.stop());

  const keys = tokenKeys(config.SITE_HOST_SECRET);
  const readerKeys =
    config.SITE_HOST_READER_SECRET === undefined ? undefined : tokenKeys(config.SITE_HOST_READER_SECRET);
  const check = (): Promise<void> => clusters.check();
  const server = createControlServer({
    protocol: siteHostProtocol,
    ...controlRoutes(sites),
    keys,
    readerKeys,
    log,
    check,
  });
  const { url } = await listen(server, config.PORT, config.HOST);
  lifetime.onClose('control server', () => closeServer(server));
  log.info({ url }, 'site host is up');
  return { lifetime, log, url };
}

interface ClustersToOpen {
  config: SiteHostConfig;
  sitesDir: string;
  accounts: Accounts;
  log: Log;
}

/** Waits for the shared Postgres, if one is configured. An organisation's own Postgres starts with its first site. */
async function openClusters({ config, sitesDir, accounts, log }: ClustersToOpen): Promise<SitesClusters> {
  const { SITES_DATABASE_URL: given, SITES_DATABASE_SOCKET: socketFolder = null, SITES_DATABASE_FOR: use } = config;
  const url = given === undefined ? undefined : await settleSuperuser(given, socketFolder);
  const name = `site-host ${createHash('sha256').update(sitesDir).digest('hex').slice(0, 16)}`;
  const shared = url === undefined ? null : new SitesCluster(url, socketFolder, name);
  const isSharedForAll = shared !== null && use === 'all_sites';
  const clusters = new SitesClusters({ sitesDir, name, shared, isSharedForAll, accounts, log });
  await shared?.open();
  if (isSharedForAll)
    log.warn(
      'all sites share one Postgres: one that takes its locks, its transaction ids or its queue of NOTIFY takes ' +
        "everybody's (SITES_DATABASE_FOR)",
    );
  if (await shared?.hasPort())
    log.warn(
      "the sites' Postgres listens on a port, where applications take its places past their own " +
        'addresses (listen_addresses)',
    );
  return clusters;
}
