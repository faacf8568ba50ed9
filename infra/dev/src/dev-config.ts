import path from 'node:path';
import { z } from 'zod';

/** The root of the clone, both from `infra/dev/src` and from `infra/dev/dist`. */
export const repoRoot = path.resolve(__dirname, '../../..');

/** A path in the clone. */
export const inRepo = (relative: string): string => path.join(repoRoot, relative);

const environmentSchema = z.object({
  DRYDOCK_PORT: z.coerce.number().int().min(0).max(65_535).default(8080),
  DRYDOCK_DATA_DIR: z.string().min(1).default('.data'),
  DRYDOCK_RATE_LIMIT_SCALE: z.string().optional(),
  TRUSTED_PROXIES: z.string().optional(),
  /** Receivers of webhooks on this machine, host:port,host:port. */
  DRYDOCK_WEBHOOK_ALLOW: z.string().optional(),
  /** The first of the ports on which processes serve their metrics, one port each. When left out, no process does. */
  OTEL_EXPORTER_PROMETHEUS_PORT: z.coerce.number().int().min(1_024).max(65_000).optional(),
  /** Tests set this: databases without fsync, the managed ones too. */
  DRYDOCK_EPHEMERAL: z.enum(['0', '1']).default('0'),
  /** Tests set this: the amount of demo content. */
  DRYDOCK_DEMO: z.enum(['whole', 'sites']).default('whole'),
  QUEUE_BACKEND: z.enum(['redis', 'postgres']).optional(),
  REDIS_URL: z.url().optional(),
});

/** Variables that every process gets unchanged. Processes get no other variable of our environment. */
const passedOn = [
  'PATH',
  'HOME',
  'LANG',
  'TZ',
  'LOG_LEVEL',
  'TRACE_READS',
  'TRACE_SLOW_MS',
  'TRACE_DETAIL',
  'DRYDOCK_EPHEMERAL',
  'DRYDOCK_FAULTS',
  'DRYDOCK_TIMEOUT_SCALE',
  'WORKFLOW_LEASE_SECONDS',
  'WORKFLOW_SWEEP_MS',
  'WORKFLOW_CONCURRENCY',
  'SANDBOX_SLOW_MS',
] as const;

/** OpenTelemetry's own variables, except those that each process sets for itself. */
const isOfTelemetry = (name: string): boolean =>
  name.startsWith('OTEL_') && !name.startsWith('OTEL_EXPORTER_PROMETHEUS_') && name !== 'OTEL_SERVICE_NAME';

export interface DevConfig {
  /** The port of the gateway. 0 chooses a free one and keeps it. */
  port: number;
  dataDir: string;
  metricsPort: number | undefined;
  /** Settings of the topology that are set. */
  settings: Readonly<Record<string, string | undefined>>;
  isEphemeral: boolean;
  demo: 'whole' | 'sites';
  queueBackend: 'redis' | 'postgres' | undefined;
  redisUrl: string | undefined;
  /** The environment of every process of ours, besides its own settings. */
  commonEnvironment: Record<string, string>;
}

/** Reads the environment once. @throws naming the variable that is wrong */
export function readDevConfig(environment: NodeJS.ProcessEnv): DevConfig {
  const given = Object.fromEntries(Object.entries(environment).filter(([, value]) => value !== ''));
  const parsed = environmentSchema.safeParse(given);
  if (!parsed.success) throw new Error(`The environment is wrong:\n${z.prettifyError(parsed.error)}`);
  const values = parsed.data;
  const common = [...passedOn, ...Object.keys(environment).filter(isOfTelemetry)].flatMap(
    (name): [string, string][] => {
      const value = environment[name];
      return value === undefined || value === '' ? [] : [[name, value]];
    },
  );
  return {
    port: values.DRYDOCK_PORT,
    dataDir: path.resolve(repoRoot, values.DRYDOCK_DATA_DIR),
    metricsPort: values.OTEL_EXPORTER_PROMETHEUS_PORT,
    settings: {
      DRYDOCK_RATE_LIMIT_SCALE: values.DRYDOCK_RATE_LIMIT_SCALE,
      DRYDOCK_WEBHOOK_ALLOW: values.DRYDOCK_WEBHOOK_ALLOW,
      TRUSTED_PROXIES: values.TRUSTED_PROXIES,
    },
    isEphemeral: values.DRYDOCK_EPHEMERAL === '1',
    demo: values.DRYDOCK_DEMO,
    queueBackend: values.QUEUE_BACKEND,
    redisUrl: values.REDIS_URL,
    commonEnvironment: {
      NODE_ENV: environment['NODE_ENV'] ?? 'development',
      // The SDK warns in every process that its versions of 2027 will need a newer Node. Ours is pinned.
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
      ...Object.fromEntries(common),
    },
  };
}
