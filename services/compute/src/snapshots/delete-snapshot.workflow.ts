import type { StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { followChange, sendOnce } from '../changes/provider-change';
import { readForStep } from '../changes/provider-failure';
import { defineWorkflow, driverOf } from '../context/context';
import { auditAcceptance } from './take-snapshot.workflow';

const input = z.strictObject({ deployTarget: z.string(), machineId: z.string(), snapshotId: z.string() });

type DeleteStep = Pick<StepContext<z.infer<typeof input>, unknown>, 'input' | 'workflowId'>;

const changeOf = ({ input: { machineId, snapshotId }, workflowId }: DeleteStep) =>
  ({ kind: 'delete_snapshot', reference: workflowId, machineId, snapshotId }) as const;

export const deleteSnapshotWorkflow = defineWorkflow({ kind: 'delete_snapshot', input })
  .step('prepare', {
    run: async (step, context) => ({
      checkpoint: await readForStep(
        driverOf(context, step, step.input.deployTarget).prepare(changeOf(step), step.signal),
        step,
      ),
    }),
  })
  .pointOfNoReturn()
  .step('send', {
    run: (step, context) => {
      const driver = driverOf(context, step, step.input.deployTarget);
      return sendOnce(context, step, { driver, change: changeOf(step), checkpoint: step.outputs.prepare.checkpoint });
    },
    commit: (tx, step, _output, context) => auditAcceptance(context.database, tx, step, 'server_snapshot.delete'),
  })
  .step('follow', {
    run: (step, context) =>
      followChange(step, driverOf(context, step, step.input.deployTarget), step.outputs.send, 'delete_snapshot'),
  })
  .build();
