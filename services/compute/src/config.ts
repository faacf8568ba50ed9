import { type ConfigOf, type Environment, readConfig } from '@drydock/service-kit/config';
import { processFields, queueFields, serviceFields } from '@drydock/service-kit/config-fields';
import { z } from 'zod';
import { targetsField } from './config-targets';

const targetFields = {
  COMPUTE_TARGETS: targetsField('JSON: what stands behind each deploy target: driver, address, credential, sizes and prices'),
  SANDBOX_COMPUTE_TARGETS: targetsField('JSON: the same for the sandbox; stand-ins, never a real provider'),
};

export const serverShape = { ...serviceFields('compute'), QUEUE_URL: queueFields.QUEUE_URL, ...targetFields };

export const workerShape = {
  ...serviceFields('compute'),
  ...processFields('compute-worker'),
  ...queueFields,
  ...targetFields,
  WORKFLOW_CONCURRENCY: z.coerce.number().int().min(1).default(8).meta({ description: 'Workflows that one worker carries at once' }),
  RECONCILE_SECONDS: z.coerce
    .number()
    .int()
    .min(1)
    .default(60)
    .meta({ description: "How often servers are compared with their providers'" }),
  SANDBOX_SLOW_MS: z.coerce.number().int().min(0).default(30_000).meta({ description: 'How long a sandbox server called slow takes' }),
};

export type ServerConfig = ConfigOf<typeof serverShape>;
export type WorkerConfig = ConfigOf<typeof workerShape>;

export const readServerConfig = (environment: Environment = process.env): ServerConfig => readConfig(serverShape, environment);
export const readWorkerConfig = (environment: Environment = process.env): WorkerConfig => readConfig(workerShape, environment);
