import { servicesWithDatabase } from '../service-names';
import { type ProgramPlan, type Surroundings, urlOf } from './program';

/** It reaches every service there is and signs its calls to each with that service's own secret. */
function gatewayEnvironment(around: Surroundings): Record<string, string> {
  const upstreams = servicesWithDatabase.flatMap((service) => [
    [`${service.toUpperCase()}_URL`, urlOf(around, service)],
    [`${service.toUpperCase()}_TOKEN_SECRET`, around.derive(`internal-token:${service}`)],
  ]);
  return {
    ...around.common,
    ...Object.fromEntries(upstreams),
    ...(around.redisUrl === undefined ? {} : { REDIS_URL: around.redisUrl }),
    ...(around.rateLimitScale === undefined ? {} : { DRYDOCK_RATE_LIMIT_SCALE: around.rateLimitScale }),
  };
}

export const gatewayPrograms: readonly ProgramPlan[] = [
  {
    name: 'gateway',
    entry: 'services/gateway/dist/server.js',
    tier: 'gateway',
    // Requests live for a millisecond: room for them to die young takes a fifth off what each costs. At most 192 MB.
    flags: ['--max-semi-space-size=64'],
    environment: gatewayEnvironment,
  },
];
