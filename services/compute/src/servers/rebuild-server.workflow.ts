import type { StepContext } from '@drydock/workflow/definition';
import { workflowsIn } from '@drydock/workflow/workflow';
import type { z } from 'zod';
import { followChange } from '../changes/follow-change';
import { observeMachine } from '../changes/observe-machine';
import { lookedAt } from '../changes/provider-failure';
import { sendOnce } from '../changes/send-once';
import type { Tx } from '../database.store';
import { rebuildServerHead } from './rebuild-server.head';
import { releaseMachine, releaseUnchanged } from './server.store';
import { driverOf, type WorkContext } from './work';

type RebuildStep = Pick<StepContext<z.infer<typeof rebuildServerHead.input>, unknown>, 'input' | 'workflowId'>;

const changeOf = ({ input, workflowId }: RebuildStep) =>
  ({ kind: 'rebuild', reference: workflowId, machineId: input.machineId, image: input.image }) as const;

/** The disk becomes the image's. Behind the send nothing can be taken back: the provider's action is followed to its end. */
export const rebuildServerWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(rebuildServerHead)
    .step('prepare', {
      run: async (step) => ({
        checkpoint: await lookedAt(driverOf(context, step, step.input.deployTarget).prepare(changeOf(step), step.signal), step),
      }),
    })
    .pointOfNoReturn()
    .step('send', {
      run: (step) => {
        const driver = driverOf(context, step, step.input.deployTarget);
        return sendOnce(context, step, { driver, change: changeOf(step), checkpoint: step.outputs.prepare.checkpoint });
      },
    })
    .step('follow', {
      weight: 8,
      run: (step) => followChange(step, driverOf(context, step, step.input.deployTarget), step.outputs.send, 'rebuild'),
    })
    .step('observe', {
      run: (step) => observeMachine(step, driverOf(context, step, step.input.deployTarget), step.input.machineId),
      commit: (tx, step, machine) => releaseMachine(tx, step.subject.id, machine, step.input.image),
    })
    .onEnd({ failed: (tx, run) => releaseUnchanged(tx, run.subject.id, run.input.powerBefore) })
    .build();
