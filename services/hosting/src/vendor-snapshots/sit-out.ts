import { retryLater } from '@drydock/workflow/definition/step-error';
import { VendorError } from '../providers/vendor-timeline';

/** Seconds until an order or a job is looked at again. */
export const laterSeconds = 5;

/** An outage of the vendor is no failure of what it has taken on: it is waited for, and no attempt is used up. Anything else is thrown as it is. */
export function sitOut(error: unknown): never {
  if (error instanceof VendorError && error.fault !== 'not_found')
    throw retryLater({ seconds: Math.max(laterSeconds, error.retryAfterSeconds) });
  throw error;
}
