import { type Problem, problem } from '@drydock/contracts/problem';
import { ComputeError } from '../providers/compute-error';

/** What a caller is told to do while a provider does not answer, in seconds (decisions.md 1). */
const retryAfterSecondsUsual = 30;

/** 503, and nothing was started. What the provider said goes to the log alone. */
export const providerUnavailable = (cause?: unknown): Problem =>
  problem('dependency_unavailable', {
    extra: { dependency: 'provider' },
    retryAfterSeconds: (cause instanceof ComputeError ? cause.retryAfterSeconds : null) ?? retryAfterSecondsUsual,
    ...(cause instanceof Error ? { internal: cause.message, cause } : {}),
  });

/** A look at a provider on behalf of a request, with every failure of it as {@link providerUnavailable}. */
export function lookedUp<T>(work: Promise<T>): Promise<T> {
  return work.catch((error: unknown) => {
    throw error instanceof ComputeError ? providerUnavailable(error) : error;
  });
}
