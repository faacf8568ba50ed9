import { classifyDatabaseError } from '@drydock/service/database/database-error';
import { parkWorkflow } from './checkpoint';
import type { Execution, RunEnd, Runner } from './execution';
import type { Hold } from './fenced';
import { type HandBack, handBack } from './lease.store';
import { type Log, logWith } from './log';
import { workflowParked } from './metrics';
import type { WorkflowProblem } from './step-error';

/** Gives the lease back; the workflow goes on later, here or elsewhere, under a new fence. */
export async function handBackClaim<Context, Tx>(
  { runner, hold }: Pick<Execution<Context, Tx>, 'runner' | 'hold'>,
  back: HandBack,
): Promise<RunEnd> {
  await handBack(runner.database.sql(), hold, back);
  runner.changed(hold.id);
  runner.dueIn(back.afterSeconds);
  return 'handed_back';
}

interface Park {
  /** The step that could not go on; null when the trouble is not in a step. */
  step: string | null;
  problem: WorkflowProblem;
}

/** Stops, keeps the resource locked and calls staff. */
export async function parkClaim<Context, Tx>(
  { runner, hold, log }: { runner: Runner<Context, Tx>; hold: Hold; log: Log },
  park: Park,
): Promise<RunEnd> {
  await parkWorkflow(runner.database.sql(), hold, park);
  workflowParked(hold.kind);
  logWith(log, { alarm: 'needs_attention' }).error(
    { step: park.step, code: park.problem.code, internal: park.problem.internal },
    'workflow needs attention',
  );
  runner.changed(hold.id);
  return 'needs_attention';
}

/** A step, or its undo, may say "later" for a day; after that it has failed like any other. */
export const waitMaxSeconds = 24 * 3_600;

/** Whether the trouble is that Postgres, a host or a storage cannot be reached, and has not been for long: that uses up no attempt. */
export const isOutOfReach = <Context, Tx>(
  { runner, hold }: Pick<Execution<Context, Tx>, 'runner' | 'hold'>,
  step: string,
  error: unknown,
): boolean => classifyDatabaseError(error) === 'unavailable' && runner.outages.isPassing(`${hold.id} ${step}`);
