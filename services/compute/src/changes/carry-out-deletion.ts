import { setTimeout as wait } from 'node:timers/promises';
import { retryLater } from '@drydock/workflow/definition';
import type { Accepted, Change } from '../providers/compute.types';
import { type ComputeDriver, ComputeError } from '../providers/compute-provider';
import { refusedSend } from './provider-failure';
import type { Step } from './send-once';

type Deletion = Extract<Change, { kind: 'delete' | 'delete_snapshot' }>;

/**
 * The pause between two looks at a deletion. It is long because nobody waits for a deletion, and each look uses up a
 * part of the account's limit of calls.
 */
const againSeconds = 3;
export const lookAgain = (): Error => retryLater({ seconds: againSeconds });

const lookEveryMs = 500;
/** A deletion that takes longer is followed by a later attempt. */
const looksMax = 20;

/**
 * Deletes the leftovers of a failed workflow; may be repeated. Resolves once the provider reports that they are
 * deleted. Until then it throws, and the step is repeated later. If the provider reports that the deletion failed, the
 * attempt has failed too, and after some failed attempts staff are called.
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
    if (looks === looksMax) throw lookAgain();
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
