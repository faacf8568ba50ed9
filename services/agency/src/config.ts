import { type ConfigOf, type Environment, readConfig } from '@drydock/service/process/config';
import { apiFields, serviceFields } from '@drydock/service/process/config-fields';

export const serverShape = { ...serviceFields('agency'), ...apiFields };
export type ServerConfig = ConfigOf<typeof serverShape>;
export const readServerConfig = (environment: Environment = process.env): ServerConfig =>
  readConfig(serverShape, environment);
