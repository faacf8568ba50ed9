import path from 'node:path';
import { type ProgramPlan, type Surroundings, serviceEnvironment, urlOf } from './program';

/** What both processes get. */
const databasesEnvironment = (around: Surroundings): Record<string, string> => ({
  ...serviceEnvironment('databases', around),
  QUEUE_URL: around.queueUrl,
  DATABASE_HOST_URL: urlOf(around, 'database-host'),
});

/** The API asks the host. */
const apiEnvironment = (around: Surroundings): Record<string, string> => ({
  ...databasesEnvironment(around),
  DATABASE_HOST_READER_SECRET: around.derive('database-host:reader'),
});

/** Only the worker opens archives, and changes what is on the host. */
const workerEnvironment = (around: Surroundings): Record<string, string> => ({
  ...databasesEnvironment(around),
  DATABASE_HOST_SECRET: around.derive('database-host'),
  BACKUPS_DIR: path.join(around.dataDir, 'database-backups'),
  ARCHIVE_KEY: around.derive('archive:databases'),
});

const hostEnvironment = (around: Surroundings): Record<string, string> => ({
  ...around.common,
  DATABASE_HOST_SECRET: around.derive('database-host'),
  DATABASE_HOST_READER_SECRET: around.derive('database-host:reader'),
  DATABASES_DIR: path.join(around.dataDir, 'databases'),
});

export const databasesPrograms: readonly ProgramPlan[] = [
  { name: 'database-host', entry: 'services/database-agent/dist/server.js', tier: 'host', environment: hostEnvironment },
  { name: 'databases', entry: 'services/databases/dist/server.js', tier: 'service', environment: apiEnvironment },
  { name: 'databases-worker', entry: 'services/databases/dist/worker.js', tier: 'service', environment: workerEnvironment },
];
