import { type ConfigOf, type Environment, readConfig } from '@drydock/service-kit/config';
import { serviceFields } from '@drydock/service-kit/config-fields';

export const serverShape = serviceFields('agency');
export type ServerConfig = ConfigOf<typeof serverShape>;
export const readServerConfig = (environment: Environment = process.env): ServerConfig => readConfig(serverShape, environment);
