import { retryLater } from '@drydock/workflow/definition/step-error';
import { VendorError } from '../providers/vendor-timeline';

/** Seconds until an order or a job is looked at again. */
export const laterSeconds = 5;

/**
 * Waits for a vendor that does not answer, without using up an attempt: an outage is no failure of the work. Any other
 * error is thrown as it is.
 */
export function sitOut(error: unknown): never {
  if (error instanceof VendorError && error.fault !== 'not_found')
    throw retryLater({ seconds: Math.max(laterSeconds, error.retryAfterSeconds) });
  throw error;
}
