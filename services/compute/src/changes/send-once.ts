import type { Sql } from '@drydock/service/database';
import {
  conclude,
  LeaseLost,
  messageOf,
  retryLater,
  type StepContext,
  StepTimeout,
} from '@drydock/workflow/definition';
import type { WorkContext } from '../context/context';
import type { Accepted, Change, Checkpoint } from '../providers/compute.types';
import { type ComputeDriver, ComputeError } from '../providers/compute-provider';
import { lookedAt, pollSeconds, refusedSend } from './provider-failure';
import { lookForSend, noteSend, takeOverSend, withdrawSend } from './provider-send.store';

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
 * Has a change accepted at most once in the life of the workflow, even if workers die, and resolves with what the
 * provider has accepted. A note is committed before the call, and only a definite refusal removes it. A step that finds
 * a note searches for the change at the provider. If the search finds nothing, the provider decides what follows. A
 * provider that recognises a repeated change (`takesOnOnce`) gets the change again. With any other provider the step
 * only searches, and the workflow fails after `lostAnswerSeconds`. A step without a note searches too, because
 * Drydock's database may have been restored to a moment before the note.
 */
export async function sendOnce(
  { database }: Pick<WorkContext, 'database'>,
  step: Step,
  sending: Sending,
): Promise<Accepted> {
  const sql = database.sql();
  const lookedSeconds = await lookForSend(sql, step.workflowId);
  if (lookedSeconds !== null) return findSent(sql, step, { sending, lookedSeconds });
  const { driver, change, checkpoint } = sending;
  const sentBefore = await lookedAt(driver.find(change, checkpoint, step.signal), step);
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
 * The signal for the call after the note. It ignores the shutdown of the process, because the call takes only a moment,
 * and a note without a call makes the whole operation fail. It aborts when the workflow may belong to another worker:
 * the lease is lost, or the step has timed out. It also aborts after `lostAnswerSeconds`, because a frozen worker must
 * not send late. The next worker waits for the end of the lease and then searches for `lostAnswerSeconds`. So the next
 * worker finds every call that was sent before the abort.
 */
function sendSignal(signal: AbortSignal, lostAnswerSeconds: number): AbortSignal {
  const lost = new AbortController();
  const forward = (): void => {
    if (signal.reason instanceof LeaseLost || signal.reason instanceof StepTimeout) lost.abort(signal.reason);
  };
  signal.addEventListener('abort', forward, { once: true });
  return AbortSignal.any([lost.signal, AbortSignal.timeout(lostAnswerSeconds * 1_000)]);
}

async function findSent(
  sql: Sql,
  step: Step,
  { sending, lookedSeconds }: { sending: Sending; lookedSeconds: number },
): Promise<Accepted> {
  const { driver, change, checkpoint } = sending;
  const found = await lookedAt(driver.find(change, checkpoint, step.signal), step);
  if (found !== null) return found;
  if (lookedSeconds < driver.lostAnswerSeconds) {
    if (driver.takesOnOnce !== true) throw retryLater({ seconds: pollSeconds(step.attempt) });
    step.signal.throwIfAborted();
    if (!(await takeOverSend(sql, step))) throw new LeaseLost(step.workflowId);
    return send(sql, step, sending);
  }
  throw conclude('provider_not_accepted', { internal: `nothing came of the ${change.kind} that was sent` });
}
