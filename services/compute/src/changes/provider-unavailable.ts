import { type Problem, problem } from '@drydock/contracts/platform/problem';
import { ComputeError } from '../providers/compute-error';

/** Retry-After while a provider does not answer, in seconds (decisions.md 1). */
const retryAfterSecondsUsual = 30;

/** The 503 for a provider that does not answer: nothing was started. The provider's own words go only to the log. */
export const providerUnavailable = (cause?: unknown): Problem =>
  problem('dependency_unavailable', {
    extra: { dependency: 'provider' },
    retryAfterSeconds: (cause instanceof ComputeError ? cause.retryAfterSeconds : null) ?? retryAfterSecondsUsual,
    ...(cause instanceof Error ? { internal: cause.message, cause } : {}),
  });

/**
 * The time limit of a read for a request: one call, and its wait for the rate limit. A listing of many pages gets no
 * more time, because the request has been answered by then.
 */
const lookMsMax = 14_000;

/**
 * Runs a look at a provider for a request, and turns every failure into {@link providerUnavailable}. It is aborted,
 * even between pages, once it takes too long.
 */
export async function lookedUp<T>(look: (signal: AbortSignal) => Promise<T>, withinMs = lookMsMax): Promise<T> {
  const ends = AbortSignal.timeout(withinMs);
  try {
    return await look(ends);
  } catch (error) {
    throw error instanceof ComputeError || ends.aborted ? providerUnavailable(error) : error;
  }
}
