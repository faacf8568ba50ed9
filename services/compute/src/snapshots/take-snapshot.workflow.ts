import type { StepContext } from '@drydock/workflow/definition/definition';
import { conclude, retryLater } from '@drydock/workflow/definition/step-error';
import { z } from 'zod';
import { auditAcceptance } from '../changes/audit-acceptance';
import { followChange } from '../changes/follow-change';
import { lookedAt, pollSeconds } from '../changes/provider-failure';
import { sendOnce } from '../changes/send-once';
import { defineWorkflow, driverOf } from '../servers/work';
import { discardSnapshot } from './discard-snapshot';

const input = z.strictObject({ deployTarget: z.string(), machineId: z.string(), description: z.string() });

type TakeStep = Pick<StepContext<z.infer<typeof input>, unknown>, 'input' | 'workflowId'>;

const changeOf = ({ input: { machineId, description }, workflowId }: TakeStep) =>
  ({ kind: 'take_snapshot', reference: workflowId, machineId, description }) as const;

/** Makes a snapshot that can be rolled back to, or none. */
export const takeSnapshotWorkflow = defineWorkflow({ kind: 'take_snapshot', input })
  .step('prepare', {
    run: async (step, context) => ({
      checkpoint: await lookedAt(
        driverOf(context, step, step.input.deployTarget).prepare(changeOf(step), step.signal),
        step,
      ),
    }),
  })
  .step('send', {
    run: (step, context) => {
      const driver = driverOf(context, step, step.input.deployTarget);
      return sendOnce(context, step, { driver, change: changeOf(step), checkpoint: step.outputs.prepare.checkpoint });
    },
    undo: async (step, context) => {
      const { prepare, send } = step.outputs;
      const sending = {
        driver: driverOf(context, step, step.input.deployTarget),
        change: changeOf(step),
        checkpoint: prepare.checkpoint,
      };
      await discardSnapshot(context, step, sending, send?.snapshotId ?? null);
    },
    commit: (tx, step, _output, context) => auditAcceptance(context.database, tx, step, 'server_snapshot.take'),
  })
  .step('follow', {
    weight: 8,
    run: async (step, context) => {
      const driver = driverOf(context, step, step.input.deployTarget);
      const { send } = step.outputs;
      await followChange(step, driver, send, 'take_snapshot');
      const { snapshotId, machineId } = send;
      const snapshot =
        snapshotId === null ? null : await lookedAt(driver.readSnapshot(machineId, snapshotId, step.signal), step);
      if (snapshot?.status === 'available') return;
      if (snapshot?.status === 'creating') throw retryLater({ seconds: pollSeconds(step.attempt) });
      throw conclude('snapshot_failed', { internal: `snapshot ${snapshotId ?? '?'} is ${snapshot?.status ?? 'gone'}` });
    },
  })
  .build();
