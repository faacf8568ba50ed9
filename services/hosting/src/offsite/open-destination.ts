import type { StepContext } from '@drydock/workflow/definition/definition';
import { fail } from '@drydock/workflow/definition/step-error';
import type { OffsiteStorage, OpenOptions } from '../providers/offsite-storage';
import type { WorkContext } from '../sites/work';
import { findUsable } from './destination.store';
import type { Destination } from './offsite.types';

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
