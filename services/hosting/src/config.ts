import { type ConfigOf, type Environment, readConfig } from '@drydock/service-kit/config';
import { processFields, queueFields, secretField, serviceFields, urlField } from '@drydock/service-kit/config-fields';
import { z } from 'zod';

const siteFields = {
  BACKUPS_DIR: z.string().min(1).meta({ description: 'Folder of the backup storage' }),
  SITE_HOST_URL: urlField('Where the site-host process takes control calls'),
  SITE_HOST_SECRET: secretField('Signs control calls to the site-host process'),
};

/** The API opens no archive and has no key to one. */
export const serverShape = { ...serviceFields('hosting'), QUEUE_URL: queueFields.QUEUE_URL, ...siteFields };

export const workerShape = {
  ...serviceFields('hosting'),
  ...processFields('hosting-worker'),
  ...queueFields,
  ...siteFields,
  ARCHIVE_KEY: z
    .string()
    .regex(/^[0-9a-f]{64}$/i, 'must be 32 bytes of hex')
    .meta({ description: 'Seals and opens every backup archive; without it no backup can be read', secret: true }),
  WORKFLOW_CONCURRENCY: z.coerce.number().int().min(1).default(4).meta({ description: 'Workflows that one worker carries at once' }),
  SANDBOX_SLOW_MS: z.coerce.number().int().min(0).default(30_000).meta({ description: 'How long a sandbox site called slow takes' }),
};

export type ServerConfig = ConfigOf<typeof serverShape>;
export type WorkerConfig = ConfigOf<typeof workerShape>;

export const readServerConfig = (environment: Environment = process.env): ServerConfig => readConfig(serverShape, environment);
export const readWorkerConfig = (environment: Environment = process.env): WorkerConfig => readConfig(workerShape, environment);
