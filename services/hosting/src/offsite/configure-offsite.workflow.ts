import { timeLimit } from '@drydock/process';
import { audit } from '@drydock/service/effects';
import { z } from 'zod';
import { defineWorkflow } from '../context/context';
import { sitePath } from '../sites/site.types';
import { activate, dropPending } from './offsite.store';
import { onStorage, probeDeadlines, probeSeconds, withStorage } from './open-destination';

/** One attempt only, because a request waits for the result. */
const attemptsMax = 1;

/**
 * Probes a customer's bucket. The transaction that records the success makes the bucket the destination of the site.
 */
export const configureOffsiteWorkflow = defineWorkflow({
  kind: 'configure_offsite',
  input: z.strictObject({ destinationId: z.uuid() }),
})
  .step('probe', {
    timeoutSeconds: 2 * probeSeconds,
    attemptsMax,
    run: (step, context) =>
      onStorage(step, attemptsMax, () => {
        const signal = AbortSignal.any([step.signal, timeLimit(probeSeconds * 1_000)]);
        const options = { signal, deadlines: probeDeadlines };
        return withStorage(context, step, (storage) => storage.probe(step.input.destinationId), options);
      }),
    commit: async (tx, step, _output, context) => {
      await activate(tx, step.input.destinationId, context.offsite.encryptionKeyId);
      const { orgId, mode, actorKeyId, workflowId, subject } = step;
      const entry = { orgId, mode, actorKeyId, action: 'offsite.configure', target: sitePath(subject.id), workflowId };
      await audit(context.database.sql(tx), entry);
    },
  })
  .onEnd({ failed: (tx, run) => dropPending(tx, run.input.destinationId) })
  .build();
