import { type Problem, problem } from '@drydock/contracts/platform/problem';

/** The refusal for a site's host that did not answer. Nothing was started. */
export const hostUnavailable = (cause?: unknown): Problem =>
  problem('dependency_unavailable', {
    extra: { dependency: 'site-host' },
    retryAfterSeconds: 5,
    ...(cause === undefined ? {} : { cause }),
  });
