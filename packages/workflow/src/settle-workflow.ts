import { faultpoint } from '@drydock/faults/faultpoint';
import { backoffSeconds } from './backoff';
import { finishWorkflow } from './checkpoint';
import type { Execution, RunEnd } from './execution';
import { enginePoints } from './fault-points';
import { handBackClaim, parkClaim } from './leave-claim';
import { workflowFinished } from './metrics';
import { LeaseLost, messageOf, type WorkflowProblem } from './step-error';

/** Hooks that write a few rows fail by a bug or by a Postgres that is away: five times with pauses tells one from the other. */
const settleAttemptsMax = 5;

/** The final status and the service's own rows, in one transaction. `problem` is null for a success. */
export async function settleWorkflow<Tx>(execution: Execution<Tx>, problem: WorkflowProblem | null): Promise<RunEnd> {
  const { runner, hold, run, definition, log } = execution;
  const status = problem === null ? 'succeeded' : 'failed';
  faultpoint(enginePoints.finishBefore);
  try {
    await runner.database.transaction(async (tx) => {
      await finishWorkflow(runner.database.sql(tx), hold, { status, error: problem });
      if (problem === null) await definition.settle.succeeded?.(tx, run);
      else await definition.settle.failed?.(tx, run, problem);
    });
  } catch (error) {
    return error instanceof LeaseLost ? 'left' : leaveSettling(execution, error);
  }
  workflowFinished(hold.kind, status);
  log.info({ status, ...(problem === null ? {} : { code: problem.code, internal: problem.internal }) }, 'workflow finished');
  runner.changed(hold.id);
  return status;
}

async function leaveSettling<Tx>(execution: Execution<Tx>, error: unknown): Promise<RunEnd> {
  const failures = execution.claim.settle_failures + 1;
  const internal = `settling failed: ${messageOf(error)}`;
  execution.log.warn({ failures, internal }, 'settling failed');
  if (failures >= settleAttemptsMax) return parkClaim(execution, { step: null, problem: { code: 'step_failed', internal } });
  return handBackClaim(execution, { afterSeconds: backoffSeconds(failures), failed: { what: 'settle' } });
}
