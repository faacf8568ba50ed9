import { readVariable, SecretFileError } from '@drydock/process';
import { z } from 'zod';
import { secretsForm } from './secrets';

/**
 * The settings of a process, with one zod schema for each environment variable. `.meta({ description })` tells what the
 * variable is for; `.meta({ secret: true })` hides its default.
 */
export type ConfigShape = Record<string, z.ZodType>;
export type ConfigOf<Shape extends ConfigShape> = z.infer<z.ZodObject<Shape>>;
export type Environment = Readonly<Record<string, string | undefined>>;

/** The metadata of a schema. It includes the metadata of a schema that `.default()` or `.optional()` wraps. */
function metaOf(schema: z.core.$ZodType | undefined): z.core.GlobalMeta {
  if (schema === undefined) return {};
  const inner = schema instanceof z.ZodDefault || schema instanceof z.ZodOptional ? metaOf(schema.def.innerType) : {};
  return { ...inner, ...z.globalRegistry.get(schema) };
}

export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/**
 * Reads the environment once, at the start. An empty variable counts as not set. `NAME_FILE` names a file that contains
 * the value of NAME. Throws {@link ConfigError} with every wrong variable, the reason and its purpose. The error never
 * contains the value, which may be a secret.
 */
export function readConfig<const Shape extends ConfigShape>(
  shape: Shape,
  environment: Environment = process.env,
): ConfigOf<Shape> {
  const given = Object.fromEntries(Object.keys(shape).map((name) => [name, readSetting(environment, name)]));
  const parsed = z.object(shape).safeParse(given);
  if (parsed.success) return parsed.data;
  const lines = parsed.error.issues.map((issue) => {
    const name = String(issue.path[0]);
    const why = given[name] === undefined ? 'is not set' : `is not valid (${issue.message})`;
    const { description } = metaOf(shape[name]);
    return `  ${name} ${why}${description === undefined ? '' : `: ${description}`}`;
  });
  throw new ConfigError(`Set these in the environment (.env.example shows them all):\n${lines.join('\n')}`);
}

function readSetting(environment: Environment, name: string): string | undefined {
  try {
    return readVariable(environment, name);
  } catch (error) {
    throw error instanceof SecretFileError ? new ConfigError(error.message) : error;
  }
}

const textOf = (value: unknown): string | undefined => (typeof value === 'string' ? value : JSON.stringify(value));

export interface VariableDescription {
  name: string;
  description: string;
  required: boolean;
  /** The default as the text of a variable. Undefined if there is none, and for a secret. */
  default: string | undefined;
  secret: boolean;
}

/**
 * Describes the variables that {@link readConfig} accepts, in the order of the shape. A test compares `.env.example`
 * with them.
 */
export function describeConfig(shape: ConfigShape): VariableDescription[] {
  return Object.entries(shape).map(([name, schema]) => {
    const meta = metaOf(schema);
    const absent = schema.safeParse(undefined);
    const secret = meta['secret'] === true;
    const fallback = absent.success && !secret ? textOf(absent.data) : undefined;
    return { name, description: meta.description ?? '', required: !absent.success, default: fallback, secret };
  });
}

/** Whether a developer runs the service. Only then may endpoints be missing. */
export const isDevelopment = (environment: Environment = process.env): boolean =>
  environment['NODE_ENV'] === 'development';

/**
 * Whether answers are checked against the contract. Tests and development check answers. Production does not, because
 * every microsecond counts.
 */
export const checksReplies = (environment: Environment = process.env): boolean =>
  environment['NODE_ENV'] === 'test' || isDevelopment(environment);

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
 * The field of the address of a process of Drydock. The address has only a protocol, a host and a port. The HTTP client
 * would refuse any other URL too, but its error would not name the variable.
 */
export const urlField = (description: string) =>
  describe(z.string().refine(isOrigin, 'must be http://host:port or https://host:port, without a path'), description);
export const isOrigin = (text: string): boolean => {
  if (!URL.canParse(text)) return false;
  const { protocol, origin, href } = new URL(text);
  return (protocol === 'http:' || protocol === 'https:') && href === `${origin}/`;
};
/** How long at most a process keeps answering requests after SIGTERM, in seconds. `seconds` is the default. */
export const drainField = (seconds: number, description: string) => ({
  DRAIN_SECONDS: describe(z.coerce.number().min(0).max(300).default(seconds), description),
});
export const portField = (description: string, fallback = 0) =>
  describe(z.coerce.number().int().min(0).max(65_535).default(fallback), description);

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

/**
 * The settings that a service shares with its commands. A command works directly on the service's database and needs no
 * other setting.
 */
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

export const apiFields = drainField(
  0,
  'How long it waits, at its end, for the gateways to go to another process of the service; ends as soon as all have',
);

/**
 * The reason for the limits of the lease and the sweep. A switch freezes its site for at most 45 s (`switchFreezeMs` of
 * the site agent). If no other worker has taken over by then, visitors see a release that was not probed.
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
