import { setTimeout as wait } from 'node:timers/promises';
import type { ProblemCode } from '@drydock/contracts/platform/problems';
import { timeLimit } from '@drydock/process';
import type { Sql } from '@drydock/service/database';
import {
  conclude,
  fail,
  LeaseLost,
  messageOf,
  retryLater,
  type StepContext,
  StepTimeout,
} from '@drydock/workflow/definition';
import type { WorkContext } from '../context/context';
import type { Accepted, Change, Checkpoint, Machine, PowerState } from '../providers/compute.types';
import { type ComputeDriver, ComputeError } from '../providers/compute-provider';
import { codeOf, pollSeconds, readForStep, refusedSend } from './provider-failure';
import { noteSend, secondsOfSearch, takeOverSend, withdrawSend } from './provider-send.store';

export type Step = Pick<
  StepContext<unknown, unknown>,
  'workflowId' | 'fence' | 'attempt' | 'signal' | 'log' | 'progress'
>;

export interface Sending {
  driver: ComputeDriver;
  change: Change;
  checkpoint: Checkpoint;
}

/**
 * Sends a change so that the provider accepts it at most once per workflow, even if workers die. A note is committed
 * before the call. A step that finds a note searches for the change at the provider, and sends it again only if the
 * provider recognises repeats. If nothing is found for `lostAnswerSeconds`, the workflow fails. A step without a note
 * searches too, because Drydock's database may have been restored to a moment before the note.
 */
export async function sendOnce(
  { database }: Pick<WorkContext, 'database'>,
  step: Step,
  sending: Sending,
): Promise<Accepted> {
  const sql = database.sql();
  const searchedSeconds = await secondsOfSearch(sql, step.workflowId);
  if (searchedSeconds !== null) return findSent(sql, step, { sending, searchedSeconds });
  const { driver, change, checkpoint } = sending;
  const sentBefore = await readForStep(driver.find(change, checkpoint, step.signal), step);
  if (sentBefore !== null) return sentBefore;
  step.signal.throwIfAborted();
  if (!(await noteSend(sql, step))) throw new LeaseLost(step.workflowId);
  return send(sql, step, sending);
}

async function send(sql: Sql, step: Step, { driver, change, checkpoint }: Sending): Promise<Accepted> {
  try {
    return await driver.send(change, checkpoint, sendSignal(step.signal, driver.lostAnswerSeconds));
  } catch (error) {
    if (!(error instanceof ComputeError) || error.reason === 'ambiguous') {
      step.signal.throwIfAborted();
      step.log.warn({ internal: messageOf(error) }, 'no answer to what was sent: looking for it');
      throw retryLater({ seconds: 1 });
    }
    await withdrawSend(sql, step);
    throw refusedSend(error, change.kind, step);
  }
}

/**
 * Returns the signal for the call that follows a committed note. The signal aborts if the workflow may belong to
 * another worker, because the lease is lost or the step has timed out. It also aborts after `lostAnswerSeconds`,
 * because a frozen worker must not send late. A shutdown of the process does not abort the call, because a workflow
 * fails if its change was noted and then not sent.
 */
function sendSignal(signal: AbortSignal, lostAnswerSeconds: number): AbortSignal {
  const lost = new AbortController();
  const forward = (): void => {
    if (signal.reason instanceof LeaseLost || signal.reason instanceof StepTimeout) lost.abort(signal.reason);
  };
  if (signal.aborted) forward();
  else signal.addEventListener('abort', forward, { once: true });
  return AbortSignal.any([lost.signal, timeLimit(lostAnswerSeconds * 1_000)]);
}

async function findSent(
  sql: Sql,
  step: Step,
  { sending, searchedSeconds }: { sending: Sending; searchedSeconds: number },
): Promise<Accepted> {
  const { driver, change, checkpoint } = sending;
  const found = await readForStep(driver.find(change, checkpoint, step.signal), step);
  if (found !== null) return found;
  if (searchedSeconds < driver.lostAnswerSeconds) {
    if (driver.recognisesRepeats !== true) throw retryLater({ seconds: pollSeconds(step.attempt) });
    step.signal.throwIfAborted();
    if (!(await takeOverSend(sql, step))) throw new LeaseLost(step.workflowId);
    return send(sql, step, sending);
  }
  throw conclude('provider_not_accepted', { internal: `nothing came of the ${change.kind} that was sent` });
}

/** The problem code for a failed action of the provider, unless `codeOf` gives a more exact code for the customer. */
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
 * Reads the provider's action once. Returns if the action has succeeded, or if `actionId` is null. While the action
 * runs, the thrown error makes the engine repeat the step later, so that no worker waits. If the action has failed, the
 * workflow ends with the code that the customer sees.
 */
export async function followChange(
  step: Step,
  driver: ComputeDriver,
  accepted: Accepted,
  kind: Change['kind'],
): Promise<void> {
  const { actionId, machineId } = accepted;
  if (actionId === null) return;
  const action = await readForStep(driver.readAction(machineId, actionId, step.signal), step);
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

const passing: readonly PowerState[] = ['rebooting', 'starting', 'stopping'];
/**
 * The largest number of reads of a machine. They take about 100 seconds. After the last read, a machine that is still
 * starting, stopping or rebooting is shown as it is.
 */
const readsMax = 15;

/**
 * Reads the machine and returns it. Throws while the machine is starting, stopping or rebooting, so that the step is
 * repeated later, at most until read number `readsMax`.
 */
export async function observeMachine(step: Step, driver: ComputeDriver, machineId: string): Promise<Machine> {
  const machine = await readForStep(driver.readMachine(machineId, step.signal), step);
  if (machine === null) throw fail('server_not_operable', { internal: `machine ${machineId} is gone` });
  if (passing.includes(machine.powerState) && step.attempt < readsMax)
    throw retryLater({ seconds: pollSeconds(step.attempt) });
  return machine;
}

type Deletion = Extract<Change, { kind: 'delete' | 'delete_snapshot' }>;

/**
 * Seconds until a deletion that has not ended is tried again. The pause is not shorter, because no customer waits for
 * these deletions and each read counts against the rate limit of the account.
 */
const cleanUpSeconds = 3;
export const retryCleanUp = (): Error => retryLater({ seconds: cleanUpSeconds });

const readEveryMs = 500;
/** The number of pauses in one attempt, together ten seconds. A deletion that takes longer needs another attempt. */
const deletionReadsMax = 20;

/**
 * Deletes a machine or snapshot that a workflow no longer needs, and resolves once it is deleted. The call may be
 * repeated. The engine repeats the step later if the deletion takes longer than ten seconds, if the machine is locked
 * or if an answer was lost. A deletion that the provider reports as failed counts as a failed attempt.
 */
export async function carryOutDeletion(step: Step, driver: ComputeDriver, deletion: Deletion): Promise<void> {
  const { actionId, machineId } = await sendDeletion(step, driver, deletion);
  for (let reads = 0; actionId !== null; reads += 1) {
    const action = await driver.readAction(machineId, actionId, step.signal).catch((error: unknown) => {
      throw error instanceof ComputeError ? retryCleanUp() : error;
    });
    if (action.state === 'succeeded') return;
    if (action.state === 'failed')
      throw new Error(`${action.command} ${action.id}: ${action.failure?.internal ?? 'no reason given'}`);
    if (reads === deletionReadsMax) throw retryCleanUp();
    await wait(readEveryMs, undefined, { signal: step.signal });
  }
}

async function sendDeletion(step: Step, driver: ComputeDriver, deletion: Deletion): Promise<Accepted> {
  try {
    return await driver.send(deletion, await driver.prepare(deletion, step.signal), step.signal);
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    throw error.reason === 'ambiguous' || error.reason === 'locked'
      ? retryCleanUp()
      : refusedSend(error, deletion.kind, step);
  }
}
