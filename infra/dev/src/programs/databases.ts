import path from 'node:path';
import { type ProgramPlan, type Surroundings, serviceEnvironment, urlOf } from './program';

/** What both processes get: the host of the instances is theirs. */
const databasesEnvironment = (around: Surroundings): Record<string, string> => ({
  ...serviceEnvironment('databases', around),
  QUEUE_URL: around.queueUrl,
  DATABASE_HOST_URL: urlOf(around, 'database-host'),
  DATABASE_HOST_SECRET: around.derive('database-host'),
});

/** Only the worker opens archives. */
const workerEnvironment = (around: Surroundings): Record<string, string> => ({
  ...databasesEnvironment(around),
  BACKUPS_DIR: path.join(around.dataDir, 'database-backups'),
  ARCHIVE_KEY: around.derive('archive:databases'),
});

const hostEnvironment = (around: Surroundings): Record<string, string> => ({
  ...around.common,
  DATABASE_HOST_SECRET: around.derive('database-host'),
  DATABASES_DIR: path.join(around.dataDir, 'databases'),
});

export const databasesPrograms: readonly ProgramPlan[] = [
  { name: 'database-host', entry: 'packages/database-host/dist/server.js', tier: 'host', environment: hostEnvironment },
  { name: 'databases', entry: 'services/databases/dist/server.js', tier: 'service', environment: databasesEnvironment },
  { name: 'databases-worker', entry: 'services/databases/dist/worker.js', tier: 'service', environment: workerEnvironment },
];
