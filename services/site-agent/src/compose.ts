import { createHash } from 'node:crypto';
import { mkdir } from 'node:fs/promises';
import { availableParallelism } from 'node:os';
import path from 'node:path';
import { createControlServer } from '@drydock/agent/control/control-server';
import { CpuShares } from '@drydock/agent/host/cpu-shares';
import { Newcomers } from '@drydock/agent/host/newcomers';
import { Ledger } from '@drydock/agent/jobs/ledger';
import { siteHostProtocol } from '@drydock/agent/site/protocol';
import { detectBoxNetwork, detectIsolation } from '@drydock/process/isolation';
import { tokenKey } from '@drydock/service/access/internal-token';
import { closeServer, listen } from '@drydock/service/http/http-server';
import { createLifetime, type Lifetime } from '@drydock/service/process/shutdown';
import { createLog } from '@drydock/service/telemetry/log';
import { OutgoingPolicy } from './apps/outgoing';
import type { SiteHostConfig } from './config';
import { PagePlaces } from './content/page-places';
import { controlRoutes } from './control-routes';
import { ConnectionBudget } from './database/connection-budget';
import { SitesCluster } from './database/sites-cluster';
import { SlowRemoval } from './releases/slow-removal';
import { DiskWatch } from './sites/disk-watch';
import { HostedSites } from './sites/hosted-sites';

/** Opens the host: cluster, every site, and last the control port, so that whoever can call it finds all sites served. */
export async function composeSiteHost(
  config: SiteHostConfig,
  places = new PagePlaces(),
): Promise<{ lifetime: Lifetime; log: ReturnType<typeof createLog>; url: string }> {
  const log = createLog({ service: config.SERVICE_NAME, level: config.LOG_LEVEL });
  const lifetime = createLifetime(log);
  const sitesDir = path.resolve(config.SITES_DIR);
  await mkdir(sitesDir, { recursive: true, mode: 0o711 });

  const cluster = new SitesCluster(
    config.SITES_DATABASE_URL,
    config.SITES_DATABASE_SOCKET ?? null,
    `site-host ${createHash('sha256').update(sitesDir).digest('hex').slice(0, 16)}`,
  );
  lifetime.onClose('sites cluster', () => cluster.close());
  await cluster.waitForServer();
  await cluster.endPredecessors();
  await cluster.closeCommonDatabases();
  if (await cluster.hasPort())
    log.warn("the sites' Postgres listens on a port, where applications take its places past their own addresses (listen_addresses)");

  const isolation = await detectIsolation();
  const removal = new SlowRemoval(sitesDir, isolation, log);
  lifetime.onClose('slow removal', () => removal.stop());
  await removal.resume();

  const ledger = new Ledger(sitesDir, 'site', () => new Date());
  const isRiskTaken = config.DRYDOCK_RUN_APPS_WITHOUT_ISOLATION !== undefined;
  if (isolation.kind === 'none')
    log.warn({ reason: isolation.reason, is_risk_taken: isRiskTaken }, 'sites cannot be kept apart on this machine');
  else log.info({ isolation: isolation.kind }, 'sites are kept apart');
  const network = await detectBoxNetwork();
  if (network.kind === 'machine')
    log.warn({ reason: network.reason }, "applications share this machine's network: they reach its loopback and its private network");
  else log.info('applications have a network of their own');
  const outgoing = new OutgoingPolicy(config.SITES_OUTGOING_ALLOW?.split(',') ?? []);
  const sessions = await cluster.sessionsForSites();
  const newcomersMax = Math.ceil(sessions / 4);
  const newcomers = new Newcomers(newcomersMax);
  const budget = new ConnectionBudget(sessions - newcomersMax);
  const cpu = new CpuShares({
    cluster: cluster.place && { ...cluster.place, organisationOf: (role) => sites.organisationOf(role) },
    cores: availableParallelism(),
    onError: (error) => log.warn({ err: error }, 'the CPU time of sites could not be sampled'),
  });
  const diskBytes = config.SITE_DISK_GB * 1e9;
  const surroundings = {
    host: config.HOST,
    cluster,
    removal,
    budget,
    newcomers,
    cpu,
    places,
    diskBytes,
    isolation,
    network,
    outgoing,
    isRiskTaken,
    log,
  };
  const sites = new HostedSites(sitesDir, ledger, surroundings);
  lifetime.onClose('sites', () => sites.close(), 12_000);
  await sites.open();
  cpu.start();
  lifetime.onClose('CPU shares', () => cpu.stop());
  const disk = new DiskWatch(
    () => sites.all(),
    (error) => log.warn({ err: error }, 'what a site has on disk could not be counted'),
  );
  disk.start();
  lifetime.onClose('disk watch', () => disk.stop());

  const key = tokenKey(config.SITE_HOST_SECRET);
  const readerKey = config.SITE_HOST_READER_SECRET === undefined ? undefined : tokenKey(config.SITE_HOST_READER_SECRET);
  const check = (): Promise<void> => cluster.check();
  const server = createControlServer({ protocol: siteHostProtocol, ...controlRoutes(sites), key, readerKey, log, check });
  const { url } = await listen(server, config.PORT, config.HOST);
  lifetime.onClose('control server', () => closeServer(server));
  log.info({ url }, 'site host is up');
  return { lifetime, log, url };
}
