import { carryOutDeletion, lookAgain } from '../changes/carry-out-deletion';
import { lookedAt } from '../changes/provider-failure';
import { lookForSend } from '../changes/provider-send.store';
import type { Sending, Step } from '../changes/send-once';
import type { WorkContext } from '../servers/work';

/**
 * Deletes the snapshot that a failed workflow may have made. `snapshotId` null: its answer was lost, and it is looked
 * for as long as it may be invisible.
 */
export async function discardSnapshot(
  { database }: Pick<WorkContext, 'database'>,
  step: Step,
  { driver, change, checkpoint }: Sending,
  snapshotId: string | null,
): Promise<void> {
  const lookedSeconds = snapshotId === null ? await lookForSend(database.sql(), step.workflowId) : 0;
  if (lookedSeconds === null) return;
  const id = snapshotId ?? (await lookedAt(driver.find(change, checkpoint, step.signal), step))?.snapshotId ?? null;
  if (id === null) {
    if (lookedSeconds < driver.lostAnswerSeconds) throw lookAgain();
    return;
  }
  const machineId = 'machineId' in change ? change.machineId : '';
  const isThere = async (): Promise<boolean> =>
    (await lookedAt(driver.readSnapshot(machineId, id, step.signal), step)) !== null;
  if (!(await isThere())) return;
  await carryOutDeletion(step, driver, {
    kind: 'delete_snapshot',
    reference: step.workflowId,
    machineId,
    snapshotId: id,
  });
  if (await isThere()) throw lookAgain();
}
