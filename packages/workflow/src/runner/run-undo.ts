import { faultpoint } from '@drydock/process';
import { context } from '@opentelemetry/api';
import { type StepDefinition, stepPoint } from '../definition/definition';
import { messageOf, type WorkflowProblem } from '../definition/step-error';
import type { RunEnd } from '../store/claim.types';
import { markFailed, withSpan } from '../store/telemetry';
import { completeUndo } from '../store/workflow-states';
import { type AttemptEnd, attempt, logAttempt } from './attempt';
import { type Execution, rowOf, stepContext } from './execution';
import {
  backoffSeconds,
  endWorkflow,
  isOutOfReach,
  outnumberHosts,
  park,
  release,
  waitMaxSeconds,
} from './leave-claim';

/**
 * Undoes steps, records each, and then ends the workflow as failed with `problem`. `names` is in the order in which to
 * undo them. If an undo fails for good, staff are called.
 */
export async function runUndo<Context, Tx>(
  execution: Execution<Context, Tx>,
  names: readonly string[],
  problem: WorkflowProblem,
): Promise<RunEnd> {
  for (const name of names) {
    const step = execution.definition.steps.find((candidate) => candidate.name === name);
    if (step?.undo === undefined) continue;
    const ended = await undoStep(execution, step);
    if (ended.end !== 'done') return leaveUndo(execution, step, ended, problem);
    await completeUndo(execution.runner.database.sql(), execution.claim, name);
    execution.runner.changed(execution.claim.id);
  }
  return endWorkflow(execution, problem);
}

function undoStep<Context, Tx>(
  execution: Execution<Context, Tx>,
  step: StepDefinition<Context, Tx>,
): Promise<AttemptEnd<void>> {
  const { claim, lease, runner } = execution;
  const attributes = { 'workflow.id': claim.id, 'workflow.kind': claim.kind, 'workflow.step': step.name };
  const attemptNumber = (rowOf(claim, step.name)?.undo_failures ?? 0) + 1;
  const logEnd = logAttempt(execution, step, { what: 'undo', attempt: attemptNumber });
  return withSpan(`${claim.kind}.${step.name}.undo`, attributes, context.active(), async (span) => {
    const limits = {
      name: `undo of ${step.name}`,
      timeoutSeconds: step.timeoutSeconds,
      lease: lease.signal,
      stopping: runner.stopping,
    };
    const ended = await attempt(limits, async (signal) => {
      faultpoint(stepPoint(claim.kind, step.name, 'undo_before'));
      const given = stepContext(execution, step, { attempt: attemptNumber, signal });
      await step.undo?.(given, runner.context);
      if (faultpoint(stepPoint(claim.kind, step.name, 'undo_after_effect')) === 'repeat')
        await step.undo?.(given, runner.context);
    });
    if (ended.end === 'failed' || ended.end === 'again')
      markFailed(span, ended.error instanceof Error ? ended.error.name : 'unknown');
    logEnd(ended.end);
    return ended;
  });
}

async function leaveUndo<Context, Tx>(
  execution: Execution<Context, Tx>,
  step: StepDefinition<Context, Tx>,
  ended: Exclude<AttemptEnd<void>, { end: 'done' }>,
  problem: WorkflowProblem,
): Promise<RunEnd> {
  if (ended.end === 'left') return 'left';
  if (ended.end === 'interrupted') return release(execution, { afterSeconds: 0 });
  if (ended.end === 'wait' && execution.claim.undoing_seconds < waitMaxSeconds)
    return release(execution, { afterSeconds: ended.seconds });
  if (ended.end === 'again' && isOutOfReach(execution, step.name, ended.error))
    return release(execution, { afterSeconds: backoffSeconds(1) });
  if (ended.end === 'again') await outnumberHosts(execution, ended.error);
  const why = ended.end === 'wait' ? `still not ready after ${waitMaxSeconds} s` : messageOf(ended.error);
  const internal = `undo of ${step.name}: ${why}`;
  const failures = (rowOf(execution.claim, step.name)?.undo_failures ?? 0) + 1;
  execution.log.warn({ step: step.name, failures, internal }, 'undo failed');
  if (ended.end === 'failed' || failures >= step.attemptsMax) {
    return park(execution, {
      step: step.name,
      problem: { ...problem, internal: `${problem.internal ?? problem.code}; then ${internal}` },
    });
  }
  return release(execution, { afterSeconds: backoffSeconds(failures), failed: { what: 'undo', step: step.name } });
}
