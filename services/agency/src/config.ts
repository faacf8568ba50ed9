import { apiFields, type ConfigOf, type Environment, readConfig, serviceFields } from '@drydock/service/process';

export const serverShape = { ...serviceFields('agency'), ...apiFields };
export type ServerConfig = ConfigOf<typeof serverShape>;
export const readServerConfig = (environment: Environment = process.env): ServerConfig =>
  readConfig(serverShape, environment);
