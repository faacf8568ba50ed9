import { retryLater } from '@drydock/workflow/step-error';
import { lookedAt, pollSeconds, refusedSend } from '../changes/provider-failure';
import { lookForSend } from '../changes/provider-send.store';
import type { Sending, Step } from '../changes/send-once';
import { ComputeError } from '../providers/compute-error';
import type { WorkContext } from '../servers/work';

/** Deletes the snapshot that a failed workflow may have made. `snapshotId` null: its answer was lost, and it is looked for as long as it may be invisible. */
export async function discardSnapshot(
  { database }: Pick<WorkContext, 'database'>,
  step: Step,
  { driver, change, checkpoint }: Sending,
  snapshotId: string | null,
): Promise<void> {
  const again = () => retryLater({ seconds: pollSeconds(step.attempt) });
  const lookedSeconds = snapshotId === null ? await lookForSend(database.sql(), step.workflowId) : 0;
  if (lookedSeconds === null) return;
  const id = snapshotId ?? (await lookedAt(driver.find(change, checkpoint, step.signal), step))?.snapshotId ?? null;
  if (id === null) {
    if (lookedSeconds < driver.lostAnswerSeconds) throw again();
    return;
  }
  const machineId = 'machineId' in change ? change.machineId : '';
  if ((await lookedAt(driver.readSnapshot(machineId, id, step.signal), step)) === null) return;
  const deletion = { kind: 'delete_snapshot', reference: step.workflowId, machineId, snapshotId: id } as const;
  try {
    const { actionId } = await driver.send(deletion, await driver.prepare(deletion, step.signal), step.signal);
    if (actionId === null) return;
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    if (error.reason !== 'ambiguous') throw refusedSend(error, deletion.kind, step);
  }
  throw again();
}
