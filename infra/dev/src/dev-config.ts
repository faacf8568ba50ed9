import path from 'node:path';
import { z } from 'zod';

/** The root of the clone. The relative path holds for `infra/dev/src` and for `infra/dev/dist`. */
export const repoRoot = path.resolve(__dirname, '../../..');

export const inRepo = (relative: string): string => path.join(repoRoot, relative);

const environmentSchema = z.object({
  DRYDOCK_PORT: z.coerce.number().int().min(0).max(65_535).default(8080),
  DRYDOCK_DATA_DIR: z.string().min(1).default('.data'),
  DRYDOCK_RATE_LIMIT_SCALE: z.string().optional(),
  TRUSTED_PROXIES: z.string().optional(),
  /** The receivers of webhooks that may be on this machine, as host:port,host:port. */
  DRYDOCK_WEBHOOK_ALLOW: z.string().optional(),
  /**
   * The first of consecutive ports on which the processes serve their metrics, one port each. Without this variable no
   * process serves metrics.
   */
  OTEL_EXPORTER_PROMETHEUS_PORT: z.coerce.number().int().min(1_024).max(65_000).optional(),
  /** Tests set this variable to 1, so that all databases run without fsync. */
  DRYDOCK_EPHEMERAL: z.enum(['0', '1']).default('0'),
  /** The amount of demo content. Most tests set it to `sites`. */
  DRYDOCK_DEMO: z.enum(['whole', 'sites']).default('whole'),
  QUEUE_BACKEND: z.enum(['redis', 'postgres']).optional(),
  REDIS_URL: z.url().optional(),
});

/** The variables of the user's environment that every process gets, besides those of OpenTelemetry. */
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

/**
 * Tells whether the variable is a setting of OpenTelemetry that all processes share. The supervisor itself sets those
 * that differ between processes.
 */
const isOfTelemetry = (name: string): boolean =>
  name.startsWith('OTEL_') && !name.startsWith('OTEL_EXPORTER_PROMETHEUS_') && name !== 'OTEL_SERVICE_NAME';

export interface DevConfig {
  /** The port of the gateway. 0 chooses a free port and keeps it for later starts. */
  port: number;
  dataDir: string;
  metricsPort: number | undefined;
  /** The values of the settings that the topology reads (`Place.setting`). */
  settings: Readonly<Record<string, string | undefined>>;
  isEphemeral: boolean;
  demo: 'whole' | 'sites';
  queueBackend: 'redis' | 'postgres' | undefined;
  redisUrl: string | undefined;
  /** The environment variables that every process of Drydock gets besides its own. */
  commonEnvironment: Record<string, string>;
}

/** Reads the settings from the environment. @throws with the name of the wrong variable */
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
      // Each process would print the AWS SDK's warning that the SDK's versions of 2027 need a newer Node. The SDK's
      // version is pinned, so the warning is useless.
      AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED: 'true',
      ...Object.fromEntries(common),
    },
  };
}
