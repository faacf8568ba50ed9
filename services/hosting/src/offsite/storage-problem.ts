import { fail, StepFailure } from '@drydock/workflow/definition/step-error';
import { definiteFailure } from '../backups/definite-failure';

/** A storage that does not answer, as the caller gets it: 503, and when to try again (decisions.md 1). */
export const storageUnavailable = { extra: { dependency: 'customer_storage' }, retryAfterSeconds: 60 } as const;

/**
 * Work of a step on a customer's storage. What no repetition mends fails for good; anything else is tried again, and what fails at the last
 * attempt is the storage's not being there.
 */
export async function onStorage<T>(
  step: { attempt: number; signal: AbortSignal },
  attemptsMax: number,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StepFailure) throw error;
    const failure = definiteFailure(error, 'site_copy');
    if (failure !== undefined) throw failure;
    if (step.signal.aborted || step.attempt < attemptsMax) throw error;
    throw fail('dependency_unavailable', { extra: storageUnavailable.extra, internal: String(error), cause: error });
  }
}
