import { carryOutDeletion, lookAgain } from '../changes/carry-out-deletion';
import { lookedAt } from '../changes/provider-failure';
import { lookForSend } from '../changes/provider-send.store';
import type { Step } from '../changes/send-once';
import type { ComputeDriver } from '../providers/compute-provider';
import type { WorkContext } from './work';

/**
 * Deletes the machine that an order may have made, until the provider does not know it any more. It is found by its
 * name, because the answer to the order may have been lost.
 */
export async function discardMachine(
  { database }: Pick<WorkContext, 'database'>,
  step: Step & { subject: { id: string } },
  driver: ComputeDriver,
): Promise<void> {
  const find = () => lookedAt(driver.findMachine(step.subject.id, step.signal), step);
  const machine = await find();
  if (machine === null) {
    const lookedSeconds = await lookForSend(database.sql(), step.workflowId);
    if (lookedSeconds === null || lookedSeconds >= driver.lostAnswerSeconds) return;
    throw lookAgain();
  }
  await carryOutDeletion(step, driver, {
    kind: 'delete',
    reference: step.workflowId,
    machineId: machine.id,
    name: step.subject.id,
  });
  if ((await find()) !== null) throw lookAgain();
}
