import type { StepContext } from '@drydock/workflow/definition';
import { conclude, LeaseLost, retryLater } from '@drydock/workflow/step-error';
import type { Accepted, Change, Checkpoint } from '../providers/compute-change.types';
import { ComputeError } from '../providers/compute-error';
import type { ComputeDriver } from '../providers/compute-provider';
import type { WorkContext } from '../servers/work';
import { lookedAt, pollSeconds, refusedSend } from './provider-failure';
import { lookForSend, noteSend, withdrawSend } from './provider-send.store';

export type Step = Pick<StepContext<unknown, unknown>, 'workflowId' | 'fence' | 'attempt' | 'signal' | 'log' | 'progress'>;

export interface Sending {
  driver: ComputeDriver;
  change: Change;
  checkpoint: Checkpoint;
}

/**
 * Sends a change at most once in the workflow's life, whoever dies on the way, and resolves with what the provider has taken on.
 * A note goes before the call. Who finds one looks at the provider for what came of it, and never sends again: when nothing is to be seen for as long as an
 * accepted call may stay invisible, the workflow ends. Only a definite refusal withdraws the note.
 */
export async function sendOnce({ database }: Pick<WorkContext, 'database'>, step: Step, sending: Sending): Promise<Accepted> {
  const sql = database.sql();
  const lookedSeconds = await lookForSend(sql, step.workflowId);
  if (lookedSeconds !== null) return findSent(step, sending, lookedSeconds);
  if (!(await noteSend(sql, step))) throw new LeaseLost(step.workflowId);
  const { driver, change, checkpoint } = sending;
  try {
    return await driver.send(change, checkpoint, step.signal);
  } catch (error) {
    if (!(error instanceof ComputeError)) throw error;
    if (error.reason === 'ambiguous') {
      step.log.warn({ internal: error.message }, 'no answer to what was sent: looking for it');
      throw retryLater({ seconds: 1 });
    }
    await withdrawSend(sql, step);
    throw refusedSend(error, change.kind, step);
  }
}

async function findSent(step: Step, { driver, change, checkpoint }: Sending, lookedSeconds: number): Promise<Accepted> {
  const found = await lookedAt(driver.find(change, checkpoint, step.signal), step);
  if (found !== null) return found;
  if (lookedSeconds < driver.lostAnswerSeconds) throw retryLater({ seconds: pollSeconds(step.attempt) });
  throw conclude('provider_not_accepted', { internal: `nothing came of the ${change.kind} that was sent` });
}
