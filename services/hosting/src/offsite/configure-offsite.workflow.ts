import { workflowsIn } from '@drydock/workflow/workflow';
import type { Tx } from '../database.store';
import type { WorkContext } from '../sites/work';
import { configureOffsiteHead } from './configure-offsite.head';
import { activate, dropPending } from './destination.store';
import { probeDeadlines, probeSeconds } from './offsite-limits';
import { withStorage } from './open-destination';
import { onStorage } from './storage-problem';

/** A request waits for it: one attempt. */
const attemptsMax = 1;

/** Tries a customer's bucket; it becomes the site's place for copies in the transaction that records the success. */
export const configureOffsiteWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(configureOffsiteHead)
    .step('probe', {
      timeoutSeconds: 2 * probeSeconds,
      attemptsMax,
      do: (step) =>
        onStorage(step, attemptsMax, () => {
          const signal = AbortSignal.any([step.signal, AbortSignal.timeout(probeSeconds * 1_000)]);
          const options = { signal, deadlines: probeDeadlines };
          return withStorage(context, step, (storage) => storage.probe(step.input.destinationId), options);
        }),
      commit: (tx, step) => activate(tx, step.input.destinationId, context.offsite.encryptionKeyId),
    })
    .settle({ failed: (tx, run) => dropPending(tx, run.input.destinationId) })
    .build();
