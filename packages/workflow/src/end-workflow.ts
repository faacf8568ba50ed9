import { faultpoint } from '@drydock/process/faultpoint';
import { backoffSeconds } from './backoff';
import { finishWorkflow } from './checkpoint';
import type { Execution, RunEnd } from './execution';
import { enginePoints } from './fault-points';
import { handBackClaim, parkClaim } from './leave-claim';
import { workflowFinished } from './metrics';
import { LeaseLost, messageOf, type WorkflowProblem } from './step-error';

/** Hooks that write a few rows fail by a bug or by a Postgres that is away: five times with pauses tells one from the other. */
const endAttemptsMax = 5;

/** The final status and the service's own rows, in one transaction. `problem` is null for a success. */
export async function endWorkflow<Context, Tx>(execution: Execution<Context, Tx>, problem: WorkflowProblem | null): Promise<RunEnd> {
  const { runner, hold, run, definition, log } = execution;
  const status = problem === null ? 'succeeded' : 'failed';
  faultpoint(enginePoints.finishBefore);
  try {
    await runner.database.transaction(async (tx) => {
      await finishWorkflow(runner.database.sql(tx), hold, { status, error: problem });
      if (problem === null) await definition.onEnd.succeeded?.(tx, run, runner.context);
      else await definition.onEnd.failed?.(tx, run, problem, runner.context);
    });
  } catch (error) {
    return error instanceof LeaseLost ? 'left' : leaveEnding(execution, error);
  }
  workflowFinished(hold.kind, status);
  log.info({ status, ...(problem === null ? {} : { code: problem.code, internal: problem.internal }) }, 'workflow finished');
  runner.changed(hold.id);
  return status;
}

async function leaveEnding<Context, Tx>(execution: Execution<Context, Tx>, error: unknown): Promise<RunEnd> {
  const failures = execution.claim.settle_failures + 1;
  const internal = `the end could not be written: ${messageOf(error)}`;
  execution.log.warn({ failures, internal }, 'the end could not be written');
  if (failures >= endAttemptsMax) return parkClaim(execution, { step: null, problem: { code: 'step_failed', internal } });
  return handBackClaim(execution, { afterSeconds: backoffSeconds(failures), failed: { what: 'end' } });
}
