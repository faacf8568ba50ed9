import { retryLater } from '@drydock/workflow/step-error';
import { lookedAt, pollSeconds, refusedSend } from '../changes/provider-failure';
import { lookForSend } from '../changes/provider-send.store';
import type { Step } from '../changes/send-once';
import { ComputeError } from '../providers/compute-error';
import type { ComputeDriver } from '../providers/compute-provider';
import type { WorkContext } from './work';

/** Deletes what an order may have made, until the provider knows it no more. Found by its name, since the answer to the order may be what was lost. */
export async function discardMachine(
  { database }: Pick<WorkContext, 'database'>,
  step: Step & { subject: { id: string } },
  driver: ComputeDriver,
): Promise<void> {
  const machine = await lookedAt(driver.findMachine(step.subject.id, step.signal), step);
  if (machine === null) {
    const lookedSeconds = await lookForSend(database.sql(), step.workflowId);
    if (lookedSeconds === null || lookedSeconds >= driver.lostAnswerSeconds) return;
    throw retryLater({ seconds: pollSeconds(step.attempt) });
  }
  const change = { kind: 'delete', reference: step.workflowId, machineId: machine.id } as const;
  try {
    await driver.send(change, await driver.prepare(change, step.signal), step.signal);
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    if (error.reason !== 'ambiguous') throw refusedSend(error, change.kind, step);
  }
  throw retryLater({ seconds: pollSeconds(step.attempt) });
}
