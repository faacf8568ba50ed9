import { fail, type StepContext, StepFailure } from '@drydock/workflow/definition';
import type { WorkContext } from '../context/context';
import type { Destination } from '../providers/offsite-place.types';
import type { OffsiteDeadlines, OffsiteStorage, OpenOptions } from '../providers/offsite-storage';
import { definiteFailure } from '../sites/definite-failure';
import { findUsable } from './offsite.store';

/**
 * The time for a whole probe of a customer's bucket, while the customer waits for an answer. Seven seconds leave room
 * for a slow handshake.
 */
export const probeSeconds = 7;

/** The deadlines of one call of a probe, in milliseconds. */
export const probeDeadlines: OffsiteDeadlines = { connectMs: 3_000, idleMs: 3_000, objectMs: 5_000 };

/** The time for a request to read all manifests of a chain, in milliseconds. */
export const lookMs = 8_000;

/**
 * The limits of steps that move a site to or from a customer's storage. Six hours are enough for 200 GB over a line of
 * 100 Mbit/s. These steps are tried more often than other steps, because their transient failures are more frequent.
 */
export const offsiteLimits = { timeoutSeconds: 6 * 3_600, attemptsMax: 8 };

/** How many objects are read at once. Each object is held in memory, and most objects have 8 MB. */
export const readsAtOnce = 6;

/** The problem for a storage that does not answer: 503, with the time to try again (decisions.md 1). */
export const storageUnavailable = { extra: { dependency: 'customer_storage' }, retryAfterSeconds: 60 } as const;

/**
 * Runs a step's work on a customer's storage. Permanent errors end the workflow. Other errors are tried again. At the
 * last attempt the failure is that the storage does not answer.
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

type Step = StepContext<{ destinationId: string }, unknown>;

/** Permanent failure `offsite_not_configured` if the destination was removed meanwhile. */
export async function requireDestination(context: WorkContext, step: Step): Promise<Destination> {
  const { orgId, mode, subject, input } = step;
  const destination = await findUsable(context.database.pool, { id: subject.id, orgId, mode }, input.destinationId);
  if (destination === null) throw fail('offsite_not_configured');
  return destination;
}

/** Opens the step's storage for `work` and closes it. */
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
