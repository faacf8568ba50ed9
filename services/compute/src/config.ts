import {
  apiFields,
  ConfigError,
  type ConfigOf,
  databaseFields,
  type Environment,
  processFields,
  queueFields,
  readConfig,
  serviceFields,
  workerFields,
} from '@drydock/service/process';
import { z } from 'zod';

/** An amount in the currency's smallest unit, such as cents. */
const amount = z.int32().min(0);
const priceSchema = z.strictObject({ hour_minor: amount, month_minor: amount });

const offered = {
  /** The code of the currency by ISO 4217. */
  currency: z.string().regex(/^[A-Z]{3}$/),
  /** The sizes on offer, by the provider's names, and their prices. */
  specs: z.record(z.string(), priceSchema),
  /** The plans on offer: a size for each plan code. */
  plans: z.record(z.string(), z.string()).default({}),
};

const calls = {
  url: z.url(),
  deadline_ms: z.int().min(100).optional(),
  /** See `lostAnswerSeconds` of ComputeDriver. */
  lost_answer_seconds: z.number().min(0).optional(),
};

const hetznerSchema = z.strictObject({ driver: z.literal('hetzner'), token: z.string().min(1), ...calls, ...offered });

const everySpecIsASize = [
  ({ sizes, specs }: { sizes: object; specs: object }) =>
    Object.keys(specs).every((spec) => Object.hasOwn(sizes, spec)),
  'a price of a size that there is not',
] as const;

const proxmoxSchema = z
  .strictObject({
    driver: z.literal('proxmox'),
    /** An API token in the form `USER@REALM!TOKENID=UUID`. */
    token: z.string().regex(/^[^@\s]+@[^!\s]+![^=\s]+=\S+$/, 'a token is USER@REALM!TOKENID=UUID'),
    /** The certificate of the cluster's own certificate authority, in PEM. */
    ca: z.string().startsWith('-----BEGIN CERTIFICATE-----').optional(),
    /** The number of the template that is cloned, for each image. */
    templates: z.record(z.string(), z.int().min(100)),
    sizes: z.record(
      z.string(),
      z.strictObject({ cores: z.int().min(1), memory_mb: z.int().min(16), disk_gb: z.int().min(1) }),
    ),
    ...calls,
    ...offered,
  })
  .refine(...everySpecIsASize);

const absolute = z.string().startsWith('/');

/**
 * Machines that run on this host. The worker starts the machines and the API reads them, so both processes run on this
 * host.
 */
const qemuSchema = z
  .strictObject({
    driver: z.literal('qemu'),
    /** The folder of one target in one mode. No other target may use it. */
    folder: absolute,
    zone: z.string().default('local'),
    images: z.record(
      z.string(),
      z.strictObject({
        disk: absolute,
        kernel: absolute.optional(),
        initrd: absolute.optional(),
        append: z.string().optional(),
      }),
    ),
    sizes: z.record(
      z.string(),
      z.strictObject({ cpus: z.int().min(1), memory_mb: z.int().min(32), disk_gb: z.int().min(1) }),
    ),
    ...offered,
  })
  .refine(...everySpecIsASize);

const targetSchema = z
  .discriminatedUnion('driver', [hetznerSchema, proxmoxSchema, qemuSchema])
  .refine(
    ({ plans, specs }) => Object.values(plans).every((spec) => Object.hasOwn(specs, spec)),
    'a plan names a size without a price',
  );

export type TargetConfig = z.infer<typeof targetSchema>;
/** The configured targets, by the name of the deploy target. */
export type TargetsConfig = Readonly<Record<string, TargetConfig>>;

function parseJson(text: string, context: z.core.$RefinementCtx): unknown {
  try {
    return JSON.parse(text);
  } catch {
    context.addIssue('must be JSON');
    return z.NEVER;
  }
}

/** The targets contain credentials. So the field is `secret`, which keeps the value out of every message. */
const targetsField = (description: string) =>
  z
    .string()
    .default('{}')
    .transform(parseJson)
    .pipe(z.record(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/), targetSchema))
    .meta({ description, secret: true });

/** The API only reads machines, so the operator gives it tokens that permit nothing else. */
export const serverShape = {
  ...serviceFields('compute'),
  ...apiFields,
  QUEUE_URL: queueFields.QUEUE_URL,
  COMPUTE_READER_TARGETS: targetsField("JSON: the worker's COMPUTE_TARGETS, each with a token that can only read"),
  SANDBOX_COMPUTE_READER_TARGETS: targetsField('JSON: the same for the sandbox; emulators, never a real provider'),
  SERVERS_PER_ORGANISATION: z.coerce
    .number()
    .int()
    .min(0)
    .default(50)
    .meta({ description: 'Servers that an organisation may have, unless staff have said otherwise of it' }),
  SNAPSHOTS_PER_SERVER: z.coerce
    .number()
    .int()
    .min(0)
    .default(20)
    .meta({ description: 'Snapshots that a server may have; a further one is refused' }),
};

export const workerShape = {
  ...serviceFields('compute'),
  ...processFields('compute-worker'),
  ...queueFields,
  ...workerFields,
  COMPUTE_TARGETS: targetsField(
    'JSON: what stands behind each deploy target: driver, address, credential, sizes and prices',
  ),
  SANDBOX_COMPUTE_TARGETS: targetsField('JSON: the same for the sandbox; emulators, never a real provider'),
  WORKFLOW_CONCURRENCY: z.coerce
    .number()
    .int()
    .min(1)
    .default(8)
    .meta({ description: 'Workflows of one organisation that a worker carries at once; twice as many for several' }),
  RECONCILE_SECONDS: z.coerce
    .number()
    .int()
    .min(1)
    .default(60)
    .meta({ description: "How often servers are compared with their providers'" }),
  GUEST_SECONDS: z.coerce
    .number()
    .int()
    .min(1)
    .max(600)
    .default(90)
    .meta({ description: 'How long a guest that is asked to shut down gets for it' }),
  SANDBOX_SLOW_MS: z.coerce
    .number()
    .int()
    .min(0)
    .default(30_000)
    .meta({ description: 'How long a sandbox server called slow takes' }),
};

export type ServerConfig = ConfigOf<typeof serverShape>;
export type WorkerConfig = ConfigOf<typeof workerShape>;

/**
 * @throws ConfigError, also if a variable of the worker is set and the API's counterpart is not. Otherwise the API
 * would start without the targets that the operator meant to configure
 */
export function readServerConfig(environment: Environment = process.env): ServerConfig {
  for (const name of ['COMPUTE_TARGETS', 'SANDBOX_COMPUTE_TARGETS'] as const) {
    const readers = name.replace('COMPUTE', 'COMPUTE_READER');
    if (environment[name] && !environment[readers])
      throw new ConfigError(
        `${readers} is not set: the API takes it in place of ${name}, the same ranges each with a token that can ` +
          'only read (Hetzner: a read-only token; Proxmox: a token with the role PVEAuditor)',
      );
  }
  return readConfig(serverShape, environment);
}
export const readWorkerConfig = (environment: Environment = process.env): WorkerConfig =>
  readConfig(workerShape, environment);

/** The command of staff reads and writes only the database, so it needs no other variable. */
export const readCommandConfig = (environment: Environment = process.env) =>
  readConfig(databaseFields('compute'), environment);
