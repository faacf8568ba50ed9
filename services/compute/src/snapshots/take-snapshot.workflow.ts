import type { Database } from '@drydock/service/database';
import { audit } from '@drydock/service/effects';
import { conclude, retryLater, type StepContext, type WorkflowRun } from '@drydock/workflow/definition';
import { z } from 'zod';
import {
  carryOutDeletion,
  followChange,
  retryCleanUp,
  type Sending,
  type Step,
  sendOnce,
} from '../changes/provider-change';
import { pollSeconds, readForStep } from '../changes/provider-failure';
import { secondsOfSearch } from '../changes/provider-send.store';
import { defineWorkflow, driverOf, type WorkContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { serverPath } from '../servers/server.types';

/**
 * Deletes the snapshot that a failed workflow may have made. If `snapshotId` is null and the change may have been sent,
 * the snapshot is searched for until `lostAnswerSeconds` are over.
 */
async function discardSnapshot(
  { database }: Pick<WorkContext, 'database'>,
  step: Step,
  { driver, change, checkpoint }: Sending,
  snapshotId: string | null,
): Promise<void> {
  const searchedSeconds = snapshotId === null ? await secondsOfSearch(database.sql(), step.workflowId) : 0;
  if (searchedSeconds === null) return;
  const id = snapshotId ?? (await readForStep(driver.find(change, checkpoint, step.signal), step))?.snapshotId ?? null;
  if (id === null) {
    if (searchedSeconds < driver.lostAnswerSeconds) throw retryCleanUp();
    return;
  }
  const machineId = 'machineId' in change ? change.machineId : '';
  const isThere = async (): Promise<boolean> =>
    (await readForStep(driver.readSnapshot(machineId, id, step.signal), step)) !== null;
  if (!(await isThere())) return;
  await carryOutDeletion(step, driver, {
    kind: 'delete_snapshot',
    reference: step.workflowId,
    machineId,
    snapshotId: id,
  });
  if (await isThere()) throw retryCleanUp();
}

/**
 * Writes the audit entry for a change that the provider has accepted, in the transaction that records the acceptance.
 * `action` is a resource and a verb, such as `server.roll_back`.
 */
export function auditAcceptance(
  database: Database<Tx>,
  tx: Tx,
  run: WorkflowRun<unknown>,
  action: string,
): Promise<void> {
  const { orgId, mode, actorKeyId, workflowId, subject } = run;
  return audit(database.sql(tx), { orgId, mode, actorKeyId, action, target: serverPath(subject.id), workflowId });
}

const input = z.strictObject({ deployTarget: z.string(), machineId: z.string(), description: z.string() });

type TakeStep = Pick<StepContext<z.infer<typeof input>, unknown>, 'input' | 'workflowId'>;

const changeOf = ({ input: { machineId, description }, workflowId }: TakeStep) =>
  ({ kind: 'take_snapshot', reference: workflowId, machineId, description }) as const;

/** Takes a snapshot. The snapshot of a failed workflow is deleted again. */
export const takeSnapshotWorkflow = defineWorkflow({ kind: 'take_snapshot', input })
  .step('prepare', {
    run: async (step, context) => ({
      checkpoint: await readForStep(
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
        snapshotId === null ? null : await readForStep(driver.readSnapshot(machineId, snapshotId, step.signal), step);
      if (snapshot?.status === 'available') return;
      if (snapshot?.status === 'creating') throw retryLater({ seconds: pollSeconds(step.attempt) });
      throw conclude('snapshot_failed', { internal: `snapshot ${snapshotId ?? '?'} is ${snapshot?.status ?? 'gone'}` });
    },
  })
  .build();
