import { servicesWithDatabase } from '../service-names';
import { type ProgramPlan, type Surroundings, serviceEnvironment } from './program';

/** The environment of keys and of its bootstrap command: whose audit entries it takes, it is told with their secrets. */
export function keysEnvironment(around: Surroundings): Record<string, string> {
  const senders = servicesWithDatabase.filter((service) => service !== 'keys');
  const secrets = Object.fromEntries(senders.map((service) => [service, around.derive(`audit:${service}`)]));
  return { ...serviceEnvironment('keys', around), AUDIT_TOKEN_SECRETS: JSON.stringify(secrets) };
}

export const keysPrograms: readonly ProgramPlan[] = [
  { name: 'keys', entry: 'services/keys/dist/server.js', tier: 'service', environment: keysEnvironment },
];
