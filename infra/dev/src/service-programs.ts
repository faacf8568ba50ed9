import path from 'node:path';
import type { DeriveSecret } from './derive-secret';
import type { NodeProgram } from './node-member';
import { serviceDatabaseUrl } from './service-databases';

/** Services with a database of their own. */
export const servicesWithDatabase = ['keys', 'hosting'] as const;
export type ServiceWithDatabase = (typeof servicesWithDatabase)[number];

/** Processes of ours, in the order in which they are told to stop: who calls stops before who is called. */
export const stopOrder = [
  ['gateway'],
  ['keys', 'hosting', 'hosting-worker'],
  ['site-host'],
  ['redis', 'sites-postgres', 'postgres'],
] as const;

/** Everything that the processes' environments are made of. */
export interface Surroundings {
  dataDir: string;
  ports: Readonly<Record<'gateway' | 'keys' | 'hosting' | 'hosting-worker' | 'site-host', number>>;
  /** Superuser URLs of our cluster and of the sites'. */
  adminUrl: string;
  sitesAdminUrl: string;
  queueUrl: string;
  /** For the gateway's quotas; undefined without a Redis. */
  redisUrl: string | undefined;
  rateLimitScale: string | undefined;
  derive: DeriveSecret;
  common: Readonly<Record<string, string>>;
}

const at = (port: number): string => `http://127.0.0.1:${port}`;

/** A service's database and role, with the password derived for it. */
export const databaseOf = (service: ServiceWithDatabase | 'queue', derive: DeriveSecret) => ({
  name: service,
  password: derive(`postgres:${service}`),
});

/** What every service and worker gets: its own database, its own secrets. */
function ofService(service: ServiceWithDatabase, around: Surroundings): Record<string, string> {
  return {
    ...around.common,
    DATABASE_URL: serviceDatabaseUrl(around.adminUrl, databaseOf(service, around.derive)),
    SERVICE_SECRET: around.derive(`service:${service}`),
    INTERNAL_TOKEN_SECRET: around.derive(`internal-token:${service}`),
    AUDIT_TOKEN_SECRET: around.derive(`audit:${service}`),
    KEYS_URL: at(around.ports.keys),
    QUEUE_URL: around.queueUrl,
  };
}

/** The environment of keys and of its bootstrap command. */
export function keysEnvironment(around: Surroundings): Record<string, string> {
  const { QUEUE_URL: _notItsOwn, ...environment } = ofService('keys', around);
  return { ...environment, AUDIT_TOKEN_SECRETS: JSON.stringify({ hosting: around.derive('audit:hosting') }) };
}

/** What both hosting processes get: the backups and the site host are theirs. */
function hostingEnvironment(around: Surroundings): Record<string, string> {
  return {
    ...ofService('hosting', around),
    BACKUPS_DIR: path.join(around.dataDir, 'backups'),
    SITE_HOST_URL: at(around.ports['site-host']),
    SITE_HOST_SECRET: around.derive('site-host'),
  };
}

export function siteHostEnvironment(around: Pick<Surroundings, 'common' | 'dataDir' | 'derive' | 'sitesAdminUrl'>): Record<string, string> {
  return {
    ...around.common,
    SITE_HOST_SECRET: around.derive('site-host'),
    SITES_DIR: path.join(around.dataDir, 'sites'),
    SITES_DATABASE_URL: around.sitesAdminUrl,
  };
}

function gatewayEnvironment(around: Surroundings): Record<string, string> {
  return {
    ...around.common,
    KEYS_URL: at(around.ports.keys),
    HOSTING_URL: at(around.ports.hosting),
    KEYS_TOKEN_SECRET: around.derive('internal-token:keys'),
    HOSTING_TOKEN_SECRET: around.derive('internal-token:hosting'),
    ...(around.redisUrl === undefined ? {} : { REDIS_URL: around.redisUrl }),
    ...(around.rateLimitScale === undefined ? {} : { DRYDOCK_RATE_LIMIT_SCALE: around.rateLimitScale }),
  };
}

/** Every process of ours in the order of its start, each with its own secrets and no one else's. */
export function listPrograms(around: Surroundings): NodeProgram[] {
  const { ports } = around;
  const hosting = hostingEnvironment(around);
  // Only the worker opens archives. glibc keeps an arena per thread; two are enough for its threads and save about 13 MB.
  const hostingWorker = { ...hosting, ARCHIVE_KEY: around.derive('archive'), MALLOC_ARENA_MAX: '2' };
  return [
    { name: 'site-host', entry: 'packages/site-host/dist/server.js', port: ports['site-host'], environment: siteHostEnvironment(around) },
    { name: 'keys', entry: 'services/keys/dist/server.js', port: ports.keys, environment: keysEnvironment(around) },
    { name: 'hosting', entry: 'services/hosting/dist/server.js', port: ports.hosting, environment: hosting },
    { name: 'hosting-worker', entry: 'services/hosting/dist/worker.js', port: ports['hosting-worker'], environment: hostingWorker },
    { name: 'gateway', entry: 'services/gateway/dist/server.js', port: ports.gateway, environment: gatewayEnvironment(around) },
  ];
}
