import {
  apiFields,
  type ConfigOf,
  databaseFields,
  type Environment,
  processFields,
  queueFields,
  readConfig,
  secretsField,
  serviceFields,
  urlField,
  workerFields,
} from '@drydock/service/process';
import { z } from 'zod';

const hostFields = { DATABASE_HOST_URL: urlField('Where the database-host process takes control calls') };

/**
 * The API does not get the key of the archives, so it cannot open an archive. It has its own secret for the database
 * agent, and the agent accepts only reads with that secret.
 */
export const serverShape = {
  ...serviceFields('databases'),
  ...apiFields,
  QUEUE_URL: queueFields.QUEUE_URL,
  ...hostFields,
  DATABASES_PER_ORGANISATION: z.coerce
    .number()
    .int()
    .min(0)
    .default(50)
    .meta({ description: 'Databases that an organisation may have, unless staff have said otherwise of it' }),
  DATABASE_HOST_READER_SECRET: secretsField(
    'Signs questions to the database-host process, which has the same value; it can change nothing there',
  ),
};

export const workerShape = {
  ...serviceFields('databases'),
  ...processFields('databases-worker'),
  ...queueFields,
  ...workerFields,
  ...hostFields,
  DATABASE_HOST_SECRET: secretsField('Signs control calls to the database-host process'),
  BACKUPS_DIR: z.string().min(1).meta({ description: 'Folder of the backups' }),
  ARCHIVE_KEY: z
    .string()
    .regex(/^[0-9a-f]{64}(?:,[0-9a-f]{64})*$/i, 'must be 32 bytes of hex, or several of these with commas between')
    .meta({ description: 'Seals and opens every backup; without it none can be read', secret: true }),
  WORKFLOW_CONCURRENCY: z.coerce
    .number()
    .int()
    .min(1)
    .default(4)
    .meta({ description: 'Workflows of one organisation that a worker carries at once; twice as many for several' }),
  OLD_INSTANCE_HOURS: z.coerce
    .number()
    .min(0)
    .default(24)
    .meta({ description: 'How long the old instance is kept after an upgrade' }),
  VERIFY_RESTORE_DAYS: z.coerce
    .number()
    .positive()
    .default(7)
    .meta({ description: "How often a database's newest backup is restored to prove it" }),
  SANDBOX_SLOW_MS: z.coerce
    .number()
    .int()
    .min(0)
    .default(30_000)
    .meta({ description: 'How long a sandbox database called slow takes' }),
};

export type ServerConfig = ConfigOf<typeof serverShape>;
export type WorkerConfig = ConfigOf<typeof workerShape>;

export const readServerConfig = (environment: Environment = process.env): ServerConfig =>
  readConfig(serverShape, environment);
export const readWorkerConfig = (environment: Environment = process.env): WorkerConfig =>
  readConfig(workerShape, environment);

/** Commands of staff need only the URL of the service's own database, because they change workflows there directly. */
export const readCommandConfig = (environment: Environment = process.env) =>
  readConfig(databaseFields('databases'), environment);
