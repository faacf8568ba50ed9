import { fail, type StepContext, StepFailure, StepWait } from '@drydock/workflow/definition';
import type { WorkContext } from '../context/context';
import {
  type Destination,
  type OffsiteDeadlines,
  OffsiteFailure,
  type OffsiteStorage,
  type OpenOptions,
} from '../providers/offsite-storage';
import { definiteFailure } from '../sites/definite-failure';
import { findUsable } from './offsite.store';

/**
 * The time for a whole probe of a customer's bucket, for which the customer waits. Seven seconds leave room for a slow
 * handshake.
 */
export const probeSeconds = 7;

/** The deadlines of one call of a probe, in milliseconds. */
export const probeDeadlines: OffsiteDeadlines = { connectMs: 3_000, idleMs: 3_000, objectMs: 5_000 };

/** The time that a request has to read the manifests of a chain. */
export const lookMs = 8_000;

/**
 * Limits of steps that move a site to or from a customer's storage. 200 GB take 4.5 hours over a line of 100 Mbit/s.
 * There are more attempts than by default, because customers' storages fail more often than others.
 */
export const offsiteLimits = { timeoutSeconds: 6 * 3_600, attemptsMax: 8 };

/** How many objects are read at once. Each is held in memory, and a segment may have 8 MB. */
export const readsAtOnce = 6;

/** The refusal while a customer's storage does not answer: 503 with Retry-After (decisions.md 1). */
export const storageUnavailable = { extra: { dependency: 'customer_storage' }, retryAfterSeconds: 60 } as const;

/**
 * Runs a step's work on a customer's storage. A permanent error ends the workflow. Any other error is tried again. If
 * the last attempt fails because of the storage, the failure is `dependency_unavailable`. An error of the site's host
 * or of our own database stays as it is, because the customer cannot do anything about it.
 */
export async function onStorage<T>(
  step: { failures: number; signal: AbortSignal },
  attemptsMax: number,
  work: () => Promise<T>,
): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (error instanceof StepFailure || error instanceof StepWait) throw error;
    const failure = definiteFailure(error, 'site_copy');
    if (failure !== undefined) throw failure;
    const isLast = step.failures + 1 >= attemptsMax;
    if (step.signal.aborted || !isLast || !(error instanceof OffsiteFailure)) throw error;
    throw fail('dependency_unavailable', { extra: storageUnavailable.extra, internal: String(error), cause: error });
  }
}

type Step = StepContext<{ destinationId: string }, unknown>;

/** Permanent failure `offsite_not_configured` if the destination was removed since the request. */
export async function requireDestination(context: WorkContext, step: Step): Promise<Destination> {
  const { orgId, mode, subject, input } = step;
  const destination = await findUsable(context.database.pool, { id: subject.id, orgId, mode }, input.destinationId);
  if (destination === null) throw fail('offsite_not_configured');
  return destination;
}

/** Opens the storage of the step for `work`, and closes it afterwards. */
export async function withStorage<T>(
  context: WorkContext,
  step: Step,
  work: (storage: OffsiteStorage, destination: Destination) => Promise<T>,
  options: OpenOptions = { signal: step.signal },
): Promise<T> {
  const destination = await requireDestination(context, step);
  const storage = context.offsite.open(destination, options);
  try {
    return await work(storage, destination);
  } finally {
    storage.close();
  }
}
