import { setTimeout as wait } from 'node:timers/promises';
import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { conclude, fail, retryLater } from '@drydock/workflow/definition';
import type { Accepted, Change, Machine, PowerState } from '../providers/compute.types';
import { type ComputeDriver, ComputeError } from '../providers/compute-provider';
import { codeOf, lookedAt, pollSeconds, refusedSend } from './provider-failure';
import type { Step } from './send-once';

const passing: readonly PowerState[] = ['rebooting', 'starting', 'stopping'];
/**
 * The most reads of a machine, which take about two minutes. After the last read, a machine that is still starting,
 * stopping or rebooting is shown as it is.
 */
const looksMax = 15;

/**
 * Reads the machine and returns it. Throws while the machine is starting, stopping or rebooting, so that the step is
 * repeated later, at most until read number `looksMax`.
 */
export async function observeMachine(step: Step, driver: ComputeDriver, machineId: string): Promise<Machine> {
  const machine = await lookedAt(driver.readMachine(machineId, step.signal), step);
  if (machine === null) throw fail('server_not_operable', { internal: `machine ${machineId} is gone` });
  if (passing.includes(machine.powerState) && step.attempt < looksMax)
    throw retryLater({ seconds: pollSeconds(step.attempt) });
  return machine;
}

/** The problem code that the customer sees if the provider's action fails. */
const failureCodes: Readonly<Record<Change['kind'], ProblemCode>> = {
  create: 'order_failed',
  start: 'order_failed',
  power_on: 'power_failed',
  power_off: 'power_failed',
  reboot: 'power_failed',
  delete: 'deletion_failed',
  take_snapshot: 'snapshot_failed',
  delete_snapshot: 'snapshot_failed',
  rollback: 'rollback_failed',
  rebuild: 'rebuild_failed',
};

/**
 * Reads the provider's action once, and returns if the action has succeeded. While the action runs, the thrown error
 * makes the engine repeat the step later, so that no worker waits. If the action has failed, the workflow ends with the
 * code that the customer sees.
 */
export async function followChange(
  step: Step,
  driver: ComputeDriver,
  accepted: Accepted,
  kind: Change['kind'],
): Promise<void> {
  const { actionId, machineId } = accepted;
  if (actionId === null) return;
  const action = await lookedAt(driver.readAction(machineId, actionId, step.signal), step);
  if (action.state === 'running') {
    step.progress((action.progress ?? 0) / 100);
    throw retryLater({ seconds: pollSeconds(step.attempt) });
  }
  if (action.state === 'succeeded') return;
  const { reason, internal } = action.failure ?? { reason: 'rejected', internal: 'no reason given' };
  const isTold = reason !== 'machine_not_found' && reason !== 'unsupported';
  throw conclude((isTold ? codeOf(reason, kind) : undefined) ?? failureCodes[kind], {
    internal: `${action.command} ${action.id}: ${internal}`,
  });
}

type Deletion = Extract<Change, { kind: 'delete' | 'delete_snapshot' }>;

/**
 * The pause before a step that deletes what a workflow no longer needs is repeated. It is long because no customer
 * waits for these deletions, and each read counts against the account's rate limit.
 */
const againSeconds = 3;
export const lookAgain = (): Error => retryLater({ seconds: againSeconds });

const lookEveryMs = 500;
/** The most reads in one attempt, which take ten seconds. A later attempt follows a deletion that takes longer. */
const deletionLooksMax = 20;

/**
 * Deletes the machine or snapshot that a workflow no longer needs. The call may be repeated. Resolves once the provider
 * reports that the deletion has succeeded. Otherwise throws, so that the step is repeated later. If the provider
 * reports failure, the attempt counts as failed. Repeated failures call staff.
 */
export async function carryOutDeletion(step: Step, driver: ComputeDriver, deletion: Deletion): Promise<void> {
  const { actionId, machineId } = await sendDeletion(step, driver, deletion);
  for (let looks = 0; actionId !== null; looks += 1) {
    const action = await driver.readAction(machineId, actionId, step.signal).catch((error: unknown) => {
      throw error instanceof ComputeError ? lookAgain() : error;
    });
    if (action.state === 'succeeded') return;
    if (action.state === 'failed')
      throw new Error(`${action.command} ${action.id}: ${action.failure?.internal ?? 'no reason given'}`);
    if (looks === deletionLooksMax) throw lookAgain();
    await wait(lookEveryMs, undefined, { signal: step.signal });
  }
}

async function sendDeletion(step: Step, driver: ComputeDriver, deletion: Deletion): Promise<Accepted> {
  try {
    return await driver.send(deletion, await driver.prepare(deletion, step.signal), step.signal);
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    throw error.reason === 'ambiguous' || error.reason === 'locked'
      ? lookAgain()
      : refusedSend(error, deletion.kind, step);
  }
}
