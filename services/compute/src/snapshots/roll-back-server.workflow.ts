import { powerStateSchema } from '@drydock/contracts/compute/compute-servers';
import { conclude, retryLater, type StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { followChange, observeMachine, sendOnce } from '../changes/provider-change';
import { readForStep } from '../changes/provider-failure';
import { defineWorkflow, driverOf } from '../context/context';
import { sandboxBehaviour } from '../servers/server.rules';
import { findServer, releaseMachine, releaseUnchanged } from '../servers/server.store';

const input = z.strictObject({
  deployTarget: z.string(),
  machineId: z.string(),
  snapshotId: z.string(),
  /** The power state when the work was accepted. It is shown again if nothing was changed. */
  powerBefore: powerStateSchema,
  /** The provider's checkpoint when the work was accepted; see `readEarlyCheckpoint`. */
  before: z.string().nullable().default(null),
});

type RollbackStep = Pick<StepContext<z.infer<typeof input>, unknown>, 'input' | 'workflowId'>;

const changeOf = ({ input: { machineId, snapshotId }, workflowId }: RollbackStep) =>
  ({ kind: 'rollback', reference: workflowId, machineId, snapshotId }) as const;

/**
 * Overwrites the disk with the snapshot. The driver checks the machine and the snapshot again just before it sends.
 * After the send only the provider knows the state, so its action is followed to its end.
 */
export const rollBackServerWorkflow = defineWorkflow({ kind: 'roll_back_server', input })
  .step('prepare', {
    run: async (step, context) => {
      const server = await findServer(context.database.pool, step, step.subject.id);
      if (server === null) throw conclude('server_not_operable', { internal: 'the server is gone' });
      const { failsRollback, isSlow } = sandboxBehaviour(server);
      const driver = driverOf(context, step, step.input.deployTarget);
      const checkpoint = step.input.before ?? (await readForStep(driver.prepare(changeOf(step), step.signal), step));
      return { checkpoint, failsRollback, endsNotBeforeMs: isSlow ? context.now().getTime() + context.slowMs : 0 };
    },
  })
  .pointOfNoReturn()
  .step('send', {
    run: (step, context) => {
      const { checkpoint, failsRollback } = step.outputs.prepare;
      if (failsRollback) throw conclude('rollback_failed', { internal: 'as the name of the sandbox server asks' });
      return sendOnce(context, step, {
        driver: driverOf(context, step, step.input.deployTarget),
        change: changeOf(step),
        checkpoint,
      });
    },
  })
  .step('follow', {
    weight: 8,
    run: async (step, context) => {
      await followChange(step, driverOf(context, step, step.input.deployTarget), step.outputs.send, 'rollback');
      const leftMs = step.outputs.prepare.endsNotBeforeMs - context.now().getTime();
      if (leftMs > 0) throw retryLater({ seconds: leftMs / 1_000 });
    },
  })
  .step('observe', {
    run: (step, context) =>
      observeMachine(step, driverOf(context, step, step.input.deployTarget), step.input.machineId),
    commit: (tx, step, machine) => releaseMachine(tx, step.subject.id, machine),
  })
  .onEnd({ failed: (tx, run) => releaseUnchanged(tx, run.subject.id, run.input.powerBefore) })
  .build();
