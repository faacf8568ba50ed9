import { powerStateSchema } from '@drydock/contracts/compute/compute-servers';
import type { StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { followChange, observeMachine, sendOnce } from '../changes/provider-change';
import { readForStep } from '../changes/provider-failure';
import { defineWorkflow, driverOf } from '../context/context';
import { releaseMachine, releaseUnchanged } from './server.store';

const input = z.strictObject({
  deployTarget: z.string(),
  machineId: z.string(),
  image: z.string(),
  /** The power state when the work was accepted. It is shown again if nothing was changed. */
  powerBefore: powerStateSchema,
  /** The provider's checkpoint when the work was accepted; see `readEarlyCheckpoint`. */
  before: z.string().nullable().default(null),
});

type RebuildStep = Pick<StepContext<z.infer<typeof input>, unknown>, 'input' | 'workflowId'>;

const changeOf = ({ input, workflowId }: RebuildStep) =>
  ({ kind: 'rebuild', reference: workflowId, machineId: input.machineId, image: input.image }) as const;

/**
 * Overwrites the disk with the image. Once the change was sent, it cannot be undone, and the provider's action is
 * followed to its end.
 */
export const rebuildServerWorkflow = defineWorkflow({ kind: 'rebuild_server', input })
  .step('prepare', {
    run: async (step, context) => ({
      checkpoint:
        step.input.before ??
        (await readForStep(
          driverOf(context, step, step.input.deployTarget).prepare(changeOf(step), step.signal),
          step,
        )),
    }),
  })
  .pointOfNoReturn()
  .step('send', {
    run: (step, context) => {
      const driver = driverOf(context, step, step.input.deployTarget);
      return sendOnce(context, step, { driver, change: changeOf(step), checkpoint: step.outputs.prepare.checkpoint });
    },
  })
  .step('follow', {
    weight: 8,
    run: (step, context) =>
      followChange(step, driverOf(context, step, step.input.deployTarget), step.outputs.send, 'rebuild'),
  })
  .step('observe', {
    run: (step, context) =>
      observeMachine(step, driverOf(context, step, step.input.deployTarget), step.input.machineId),
    commit: (tx, step, machine) => releaseMachine(tx, step.subject.id, machine, step.input.image),
  })
  .onEnd({ failed: (tx, run) => releaseUnchanged(tx, run.subject.id, run.input.powerBefore) })
  .build();
