import type { StepContext } from '@drydock/workflow/definition';
import { workflowsIn } from '@drydock/workflow/workflow';
import type { z } from 'zod';
import { auditAcceptance } from '../changes/audit-acceptance';
import { followChange } from '../changes/follow-change';
import { lookedAt } from '../changes/provider-failure';
import { sendOnce } from '../changes/send-once';
import type { Tx } from '../database.store';
import { driverOf, type WorkContext } from '../servers/work';
import { deleteSnapshotHead } from './delete-snapshot.head';

type DeleteStep = Pick<StepContext<z.infer<typeof deleteSnapshotHead.input>, unknown>, 'input' | 'workflowId'>;

const changeOf = ({ input: { machineId, snapshotId }, workflowId }: DeleteStep) =>
  ({ kind: 'delete_snapshot', reference: workflowId, machineId, snapshotId }) as const;

export const deleteSnapshotWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(deleteSnapshotHead)
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
      commit: (tx, step) => auditAcceptance(context.database, tx, step, 'server_snapshot.delete'),
    })
    .step('follow', {
      run: (step) => followChange(step, driverOf(context, step, step.input.deployTarget), step.outputs.send, 'delete_snapshot'),
    })
    .build();
