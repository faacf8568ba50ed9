import { z } from 'zod';
import type { ConfigOf } from './config';
import { secretsForm } from './secrets';

const describe = <Schema extends z.ZodType>(schema: Schema, description: string): Schema =>
  schema.meta({ description });
/** The field of a secret: at least 32 bytes in hex. Its value is never printed. */
export const secretField = (description: string) =>
  z
    .string()
    .regex(/^(?:[0-9a-f]{2}){32,}$/i, 'must be at least 32 bytes of hex')
    .meta({ description, secret: true });
/**
 * The field of a secret that can be rotated. It has one or more secrets, separated by commas. The process signs, seals
 * and derives new values with the first secret. It accepts values of every secret.
 */
export const secretsField = (description: string) =>
  z
    .string()
    .regex(secretsForm, 'must be at least 32 bytes of hex, or several of these with commas between')
    .meta({ description, secret: true });
/**
 * The field of the address of a process of Drydock. It has only a host and a port. The HTTP client would refuse any
 * other URL too, but its error would not name the variable.
 */
export const urlField = (description: string) =>
  describe(z.string().refine(isOrigin, 'must be http://host:port or https://host:port, without a path'), description);
export const isOrigin = (text: string): boolean => {
  if (!URL.canParse(text)) return false;
  const { protocol, origin, href } = new URL(text);
  return (protocol === 'http:' || protocol === 'https:') && href === `${origin}/`;
};
/** How long a process keeps answering requests after SIGTERM, in seconds. `seconds` is the default. */
export const drainField = (seconds: number, description: string) => ({
  DRAIN_SECONDS: describe(z.coerce.number().min(0).max(300).default(seconds), description),
});
export const portField = (description: string, fallback = 0) =>
  describe(z.coerce.number().int().min(0).max(65_535).default(fallback), description);

/** The settings of every process. */
export const processFields = (serviceName: string) => ({
  SERVICE_NAME: describe(z.string().default(serviceName), 'Name in logs and traces'),
  HOST: describe(z.string().default('127.0.0.1'), 'Address to listen on'),
  PORT: portField('Port to listen on; 0 takes a free one'),
  LOG_LEVEL: describe(
    z.enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']).default('info'),
    'Least level that is logged',
  ),
  OTEL_EXPORTER_OTLP_ENDPOINT: describe(
    z.url().optional(),
    'Base of the OTLP/HTTP collector; unset turns telemetry off',
  ),
  DRYDOCK_TIMEOUT_SCALE: describe(
    z.coerce.number().min(1).default(1),
    'Multiplies every time-out within Drydock; for tests and very slow machines',
  ),
  TRACE_READS: describe(
    z.coerce.number().min(0).max(1).default(0.05),
    'Share of the reads whose traces are sent, 0 to 1; below 1 at most 50 a second. Other traces always are',
  ),
  TRACE_SLOW_MS: describe(z.coerce.number().min(0).default(1_000), 'A request that takes longer is slow'),
  TRACE_DETAIL: describe(
    z.enum(['default', 'full']).default('default'),
    'full makes a span of everything: layers of a statement, looks at a queue',
  ),
  DRYDOCK_FAULTS: describe(z.string().optional(), 'Folder of fault tokens; for the chaos tests only'),
});

/** The settings of commands, which run beside a service's database and need only its URL. */
export const databaseFields = (serviceName: string) => ({
  DATABASE_URL: z
    .url('must be a URL')
    .meta({ description: `Postgres URL of ${serviceName}'s own database and role`, secret: true }),
});

/** The settings of every service and worker with a database of its own. */
export const serviceFields = (serviceName: string) => ({
  ...processFields(serviceName),
  ...databaseFields(serviceName),
  SERVICE_SECRET: secretsField(`Source of ${serviceName}'s own keys (cursors, peppers)`),
  INTERNAL_TOKEN_SECRET: secretsField('Verifies the calls of the gateway; shared with it alone'),
  AUDIT_TOKEN_SECRET: secretsField('Signs the delivery of audit entries to keys'),
  KEYS_URL: urlField('Where keys listens, for the delivery of audit entries'),
});

export type ServiceConfig = ConfigOf<ReturnType<typeof serviceFields>>;

/** The settings of every service's API. */
export const apiFields = drainField(
  0,
  'How long it waits, at its end, for the gateways to go to another process of the service; ends as soon as all have',
);

/**
 * The reason for the limit of the lease. The site agent freezes a site for 45 s at a switch (`switchFreezeMs`), so that
 * nobody sees a release that was not probed. If the worker dies during the freeze, another worker has to continue the
 * switch before the freeze ends.
 */
const takeoverReason =
  'a switch freezes its site for 45 s, and within them another worker has to take over from one that died';

/** The settings of the queue, for every worker and every service that starts workflows. */
export const queueFields = {
  QUEUE_URL: z.url('must be a URL').meta({
    description: 'Doorbell of the workers: redis://…, redis+sentinel://…, redis+cluster://… or postgresql://…',
    secret: true,
  }),
  WORKFLOW_LEASE_SECONDS: describe(
    z.coerce.number().min(1).max(30, `must be at most 30: ${takeoverReason}`).default(15),
    'How long a worker owns a workflow without a heartbeat, at most 30',
  ),
  WORKFLOW_SWEEP_MS: describe(
    z.coerce.number().int().min(50).max(5_000, `must be at most 5000: ${takeoverReason}`).default(2_000),
    'How often due workflows are looked for, at most 5000',
  ),
};

/** The settings of every worker with a queue. */
export const workerFields = {
  QUEUE_BOARD_TOKEN: secretField(
    'Password of the board of the queues, at /queues of the worker; unset, there is none',
  ).optional(),
};

export type QueueConfig = ConfigOf<typeof queueFields>;
export type ApiConfig = ConfigOf<typeof apiFields>;
