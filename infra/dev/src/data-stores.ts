import path from 'node:path';
import { clusterAccounts } from '@drydock/postgres/server/unprivileged';
import { siteRolePattern } from '@drydock/site-agent/sites/site-folder';
import { prepareQueue } from '@drydock/workflow/dispatch/prepare-queue';
import { openChildLog } from './child-log';
import type { DeriveSecret } from './derive-secret';
import type { DevConfig } from './dev-config';
import type { PortBook } from './ports';
import { postgresMember } from './postgres-member';
import { databaseOf } from './programs/program';
import { ensureServiceDatabases, serviceDatabaseUrl } from './service-databases';
import type { ServiceWithDatabase } from './service-names';
import { chooseQueue, redisMember } from './settle-queue';
import type { Supervisor } from './supervisor';

/** Where Drydock's data lives once its servers are up. */
export interface DataStores {
  adminUrl: string;
  sitesAdminUrl: string;
  /** Folder of the Unix socket by which sites' sessions go; their roles are turned away at the port. */
  sitesSocketFolder: string;
  queueUrl: string;
  redisUrl: string | undefined;
  /** What the user should know about where data is. */
  notes: string[];
}

/** Twice what building an index while a site is restored may take (`maintenance_work_mem`), and less than the largest value that Postgres can make. */
const sitesSessionBytes = 512 * 2 ** 20;

interface StoreContext {
  config: DevConfig;
  supervisor: Supervisor;
  ports: PortBook;
  derive: DeriveSecret;
}

/** Starts our Postgres, the sites' Postgres and the queue, all at once, and makes the services' databases. */
export async function startDataStores(context: StoreContext, services: readonly ServiceWithDatabase[]): Promise<DataStores> {
  const [own, sites, redis] = await Promise.all([
    startCluster(context, 'postgres'),
    startCluster(context, 'sites-postgres'),
    startQueueServer(context),
  ]);
  const queue = databaseOf('queue', context.derive);
  const databases = services.map((service) => databaseOf(service, context.derive));
  await ensureServiceDatabases(own.adminUrl, redis.url === undefined ? [...databases, queue] : databases);
  const queueUrl = redis.url ?? serviceDatabaseUrl(own.adminUrl, queue);
  await prepareQueue(queueUrl);
  const elsewhere = [own, sites].filter(({ isElsewhere }) => isElsewhere);
  return {
    adminUrl: own.adminUrl,
    sitesAdminUrl: sites.adminUrl,
    sitesSocketFolder: sites.socketFolder ?? '',
    queueUrl,
    redisUrl: redis.url,
    notes: [
      `Queue: ${redis.note}`,
      ...elsewhere.map(({ dataDir }) => `Postgres cannot reach this folder as the user it runs as; its data is in ${dataDir}`),
    ],
  };
}

async function startCluster({ config, supervisor, ports }: StoreContext, name: 'postgres' | 'sites-postgres') {
  const folder = path.join(config.dataDir, name);
  const log = openChildLog(path.join(config.dataDir, 'logs'), name);
  const port = await ports.settle(name);
  const ofSites = { account: clusterAccounts.sites, sessionBytes: sitesSessionBytes, socketOnlyRoles: siteRolePattern };
  const own = name === 'postgres' ? { account: clusterAccounts.services } : ofSites;
  const postgres = postgresMember({ name, folder, port, isEphemeral: config.isEphemeral, onLog: log.write, ...own });
  await supervisor.keepRunning(postgres.member);
  return postgres.server();
}

async function startQueueServer({ config, supervisor, ports }: StoreContext): Promise<{ url: string | undefined; note: string }> {
  const choice = chooseQueue(config);
  if (choice.kind === 'postgres') return { url: undefined, note: 'Postgres' };
  if (choice.kind === 'redis-url') return { url: choice.url, note: 'Redis at REDIS_URL' };
  const log = openChildLog(path.join(config.dataDir, 'logs'), 'redis');
  const port = await ports.settle('redis');
  const redis = redisMember({ folder: path.join(config.dataDir, 'redis'), port, isEphemeral: config.isEphemeral, onLog: log.write });
  await supervisor.keepRunning(redis.member);
  return { url: redis.url(), note: 'a private Redis or Valkey' };
}
