import { fail, StepFailure } from '@drydock/workflow/definition/step-error';
import { definiteFailure } from '../backups/definite-failure';

/** The problem for a storage that does not answer: 503, with the time to try again (decisions.md 1). */
export const storageUnavailable = { extra: { dependency: 'customer_storage' }, retryAfterSeconds: 60 } as const;

/**
 * Runs a step's work on a customer's storage. Permanent errors end the workflow. Others are tried again, and at the
 * last attempt they count as a storage that does not answer.
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
