import { ConfigError, type ConfigOf, type Environment, readConfig } from '@drydock/service/process/config';
import {
  apiFields,
  databaseFields,
  processFields,
  queueFields,
  serviceFields,
  workerFields,
} from '@drydock/service/process/config-fields';
import { z } from 'zod';
import { targetsField } from './config-targets';

/** The API reads machines and never changes one: its tokens cannot. */
export const serverShape = {
  ...serviceFields('compute'),
  ...apiFields,
  QUEUE_URL: queueFields.QUEUE_URL,
  COMPUTE_READER_TARGETS: targetsField("JSON: the worker's COMPUTE_TARGETS, each with a token that can only read"),
  SANDBOX_COMPUTE_READER_TARGETS: targetsField('JSON: the same for the sandbox; emulators, never a real provider'),
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
 * @throws ConfigError also when the API is given the worker's tokens. It would then have no ranges and refuse every
 * call
 */
export function readServerConfig(environment: Environment = process.env): ServerConfig {
  for (const name of ['COMPUTE_TARGETS', 'SANDBOX_COMPUTE_TARGETS'] as const) {
    const readers = name.replace('COMPUTE', 'COMPUTE_READER');
    if (environment[name] && !environment[readers])
      throw new ConfigError(
        `${readers} is not set: the API takes it in place of ${name}, the same ranges each with a token that can only read (Hetzner: a read-only token; Proxmox: a token with the role PVEAuditor)`,
      );
  }
  return readConfig(serverShape, environment);
}
export const readWorkerConfig = (environment: Environment = process.env): WorkerConfig =>
  readConfig(workerShape, environment);

/** Commands of staff run next to the database, and need only its URL. */
export const readCommandConfig = (environment: Environment = process.env) =>
  readConfig(databaseFields('compute'), environment);
