import type { ServiceName } from '@drydock/contracts/platform/endpoint';
import {
  ConfigError,
  type ConfigOf,
  drainField,
  type Environment,
  isOrigin,
  processFields,
  readConfig,
  secretsField,
} from '@drydock/service/process';
import { z } from 'zod';

const upstreamSecret = (name: ServiceName) =>
  secretsField(`Signs the calls to ${name}; needed with its URL`).optional();

const networkListSchema = z.array(z.union([z.ipv4(), z.ipv6(), z.cidrv4(), z.cidrv6()]));

const entriesOf = (list: string): string[] =>
  list
    .split(',')
    .map((entry) => entry.trim())
    .filter((entry) => entry !== '');

const urlsField = (description: string) =>
  z
    .string()
    .refine(
      (list) => entriesOf(list).length > 0 && entriesOf(list).every(isOrigin),
      'must be http://host:port or https://host:port, without a path',
    )
    .meta({
      description: `${description}; several with commas between them are processes of it that stand in for each other`,
    });
const upstreamUrls = (name: ServiceName) =>
  urlsField(`Where ${name} listens; without it its endpoints answer 503`).optional();

export const configShape = {
  ...processFields('gateway'),
  ...drainField(
    1,
    'How long it goes on answering after /readyz says that it ends: time for what stands before it to notice',
  ),
  KEYS_URL: urlsField('Where keys listens; every call is authenticated there'),
  KEYS_TOKEN_SECRET: secretsField('Signs the calls to keys'),
  HOSTING_URL: upstreamUrls('hosting'),
  HOSTING_TOKEN_SECRET: upstreamSecret('hosting'),
  COMPUTE_URL: upstreamUrls('compute'),
  COMPUTE_TOKEN_SECRET: upstreamSecret('compute'),
  AGENCY_URL: upstreamUrls('agency'),
  AGENCY_TOKEN_SECRET: upstreamSecret('agency'),
  DATABASES_URL: upstreamUrls('databases'),
  DATABASES_TOKEN_SECRET: upstreamSecret('databases'),
  REDIS_URL: z.url('must be a URL').optional().meta({
    description: 'Redis or Valkey for the quotas, as QUEUE_URL; without it each gateway counts alone',
    secret: true,
  }),
  TRUSTED_PROXIES: z
    .string()
    .default('')
    .refine(
      (list) => networkListSchema.safeParse(entriesOf(list)).success,
      'must be addresses and networks, with commas between them',
    )
    .meta({
      description: 'Proxies of yours in front of it, as addresses and networks: only their X-Forwarded-For is believed',
    }),
  DRYDOCK_RATE_LIMIT_SCALE: z.coerce.number().positive().default(1).meta({ description: 'Multiplies every quota' }),
};

export interface UpstreamConfig {
  /** The URLs of the service's processes. Each process can take every call. */
  urls: readonly string[];
  /** The secret for the tokens that the gateway sends to the service, in hex. */
  tokenSecret: string;
}

export interface GatewayConfig {
  host: string;
  port: number;
  drainMs: number;
  logLevel: string;
  serviceName: string;
  upstreams: Partial<Record<ServiceName, UpstreamConfig>> & { keys: UpstreamConfig };
  redisUrl: string | undefined;
  rateLimitScale: number;
  trustedProxies: readonly string[];
}

/** Reads and checks the environment. Throws ConfigError, which names the missing and the invalid variables. */
export function readGatewayConfig(environment: Environment = process.env): GatewayConfig {
  const config = readConfig(configShape, environment);
  return {
    host: config.HOST,
    port: config.PORT,
    drainMs: config.DRAIN_SECONDS * 1_000,
    logLevel: config.LOG_LEVEL,
    serviceName: config.SERVICE_NAME,
    upstreams: readUpstreams(config),
    redisUrl: config.REDIS_URL,
    rateLimitScale: config.DRYDOCK_RATE_LIMIT_SCALE,
    trustedProxies: entriesOf(config.TRUSTED_PROXIES),
  };
}

function readUpstreams(config: ConfigOf<typeof configShape>): GatewayConfig['upstreams'] {
  const upstreams: GatewayConfig['upstreams'] = {
    keys: { urls: entriesOf(config.KEYS_URL), tokenSecret: config.KEYS_TOKEN_SECRET },
  };
  const optional = {
    hosting: [config.HOSTING_URL, config.HOSTING_TOKEN_SECRET],
    compute: [config.COMPUTE_URL, config.COMPUTE_TOKEN_SECRET],
    agency: [config.AGENCY_URL, config.AGENCY_TOKEN_SECRET],
    databases: [config.DATABASES_URL, config.DATABASES_TOKEN_SECRET],
  } as const;
  for (const name of ['hosting', 'compute', 'agency', 'databases'] as const) {
    const [list, tokenSecret] = optional[name];
    if (list === undefined) continue;
    if (tokenSecret === undefined)
      throw new ConfigError(`${name.toUpperCase()}_URL is set, so ${name.toUpperCase()}_TOKEN_SECRET must be too`);
    upstreams[name] = { urls: entriesOf(list), tokenSecret };
  }
  return upstreams;
}
