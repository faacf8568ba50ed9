export { ConfigError, type ConfigOf, type Environment, readConfig } from './config';
export {
  apiFields,
  databaseFields,
  drainField,
  isOrigin,
  processFields,
  type QueueConfig,
  queueFields,
  type ServiceConfig,
  secretField,
  secretsField,
  serviceFields,
  urlField,
  workerFields,
} from './config-fields';
export { databaseReady, type Foundation, layFoundation, type ReadyChecks } from './foundation';
export { type Process, runCommand, runProcess } from './run-process';
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
