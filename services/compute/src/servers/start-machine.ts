import { retryLater } from '@drydock/workflow/definition/step-error';
import { lookedAt, pollSeconds, refusedSend } from '../changes/provider-failure';
import type { Step } from '../changes/send-once';
import type { MachineOrder } from '../providers/compute-change.types';
import { ComputeError } from '../providers/compute-error';
import type { ComputeDriver } from '../providers/compute-provider';

/**
 * Resizes the machine as ordered and starts it. It is sent as often as needed, because a running machine is left as it
 * is.
 */
export async function startMachine(
  step: Step,
  driver: ComputeDriver,
  machineId: string,
  order: MachineOrder,
): Promise<void> {
  const change = { kind: 'start', reference: step.workflowId, machineId, order } as const;
  const checkpoint = await lookedAt(driver.prepare(change, step.signal), step);
  const { actionId } = await driver.send(change, checkpoint, step.signal).catch((error: unknown) => {
    if (!(error instanceof ComputeError)) throw error;
    throw error.reason === 'ambiguous'
      ? retryLater({ seconds: pollSeconds(step.attempt) })
      : refusedSend(error, change.kind, step);
  });
  // The action is not followed, because the machine itself shows whether it came up. A repeated send finds it started.
  if (actionId !== null) step.log.debug({ action: actionId }, 'the machine is being started');
}
