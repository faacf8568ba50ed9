import { type Problem, problem } from '@drydock/contracts/platform/problem';
import { ComputeError } from '../providers/compute-error';

/** Retry-After while a provider does not answer, in seconds (decisions.md 1). */
const retryAfterSecondsUsual = 30;

/** 503, and nothing was started. What the provider said goes to the log alone. */
export const providerUnavailable = (cause?: unknown): Problem =>
  problem('dependency_unavailable', {
    extra: { dependency: 'provider' },
    retryAfterSeconds: (cause instanceof ComputeError ? cause.retryAfterSeconds : null) ?? retryAfterSecondsUsual,
    ...(cause instanceof Error ? { internal: cause.message, cause } : {}),
  });

/** One call with its wait for the rate limit. A listing of many pages gets no more: a request has its answer by then, and nobody would read the rest. */
const lookMsMax = 14_000;

/** A look at a provider on behalf of a request, with every failure of it as {@link providerUnavailable}. It is called off, to the last page, once it takes too long. */
export async function lookedUp<T>(look: (signal: AbortSignal) => Promise<T>, withinMs = lookMsMax): Promise<T> {
  const ends = AbortSignal.timeout(withinMs);
  try {
    return await look(ends);
  } catch (error) {
    throw error instanceof ComputeError || ends.aborted ? providerUnavailable(error) : error;
  }
}
