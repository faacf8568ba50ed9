import type { DeriveSecret } from '../derive-secret';
import { serviceDatabaseUrl } from '../service-databases';
import type { ServiceWithDatabase } from '../service-names';

/** Everything that the processes' environments are made of. */
export interface Surroundings {
  dataDir: string;
  /** The port of a process, by its name. @throws for a name that no domain has */
  portOf(name: string): number;
  /** Superuser URLs of our cluster and of the sites'. */
  adminUrl: string;
  sitesAdminUrl: string;
  /** Folder of the sites' cluster's Unix socket. */
  sitesSocketFolder: string;
  queueUrl: string;
  /** For the gateway's quotas; undefined without a Redis. */
  redisUrl: string | undefined;
  rateLimitScale: string | undefined;
  derive: DeriveSecret;
  common: Readonly<Record<string, string>>;
}

/** When a process is told to stop: who calls stops before who is called. A `host` holds customers' things, or stands in for a provider. */
export type Tier = 'gateway' | 'service' | 'host';

/** A process of ours as it is planned; its port is found by its name. */
export interface ProgramPlan {
  name: string;
  /** Built entry point, relative to the clone's root. */
  entry: string;
  tier: Tier;
  /** Node's own flags. */
  flags?: readonly string[];
  /** Its own secrets and no one else's. */
  environment(around: Surroundings): Record<string, string>;
}

export const urlOf = (around: Surroundings, name: string): string => `http://127.0.0.1:${around.portOf(name)}`;

/** A service's database and role, with the password derived for it. */
export const databaseOf = (service: ServiceWithDatabase | 'queue', derive: DeriveSecret) => ({
  name: service,
  password: derive(`postgres:${service}`),
});

/** What every service and worker gets: its own database, its own secrets. */
export const serviceEnvironment = (service: ServiceWithDatabase, around: Surroundings): Record<string, string> => ({
  ...around.common,
  DATABASE_URL: serviceDatabaseUrl(around.adminUrl, databaseOf(service, around.derive)),
  SERVICE_SECRET: around.derive(`service:${service}`),
  INTERNAL_TOKEN_SECRET: around.derive(`internal-token:${service}`),
  AUDIT_TOKEN_SECRET: around.derive(`audit:${service}`),
  KEYS_URL: urlOf(around, 'keys'),
});
