export {
  apiFields,
  ConfigError,
  type ConfigOf,
  databaseFields,
  drainField,
  type Environment,
  isOrigin,
  processFields,
  type QueueConfig,
  queueFields,
  readConfig,
  type ServiceConfig,
  secretField,
  secretsField,
  serviceFields,
  urlField,
  workerFields,
} from './config';
export { createRounds, keepLooking, type Looking, type Rounds } from './keep-looking';
export {
  connectionsMax,
  databaseReady,
  type Foundation,
  layFoundation,
  type Process,
  type ReadyChecks,
  runCommand,
  runProcess,
} from './run-process';
export {
  type CurrentFirst,
  deriveKey,
  deriveKeys,
  nameOfSecret,
  secretBuffers,
  secretNamed,
  secretsForm,
  secretsIn,
} from './secrets';
export { closeOnSignal, createLifetime, type Lifetime, shutdownLimitMs } from './shutdown';
