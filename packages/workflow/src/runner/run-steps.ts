import { performance } from 'node:perf_hooks';
import { faultpoint } from '@drydock/process';
import { context } from '@opentelemetry/api';
import { type Log, type StepContext, type StepDefinition, stepPoint } from '../definition/definition';
import { LeaseLost, messageOf, StepFailure, type WorkflowProblem } from '../definition/step-error';
import type { RunEnd } from '../store/claim.types';
import { markFailed, stepEnded, withSpan } from '../store/telemetry';
import { beginUndo, completeStep, completeUndo } from '../store/workflow-states';
import { type AttemptEnd, attempt, logAttempt } from './attempt';
import { type Execution, percentDone, rowOf, stepContext } from './execution';
import {
  backoffSeconds,
  endWorkflow,
  isOutOfReach,
  outnumberHosts,
  park,
  release,
  waitMaxSeconds,
} from './leave-claim';

/** The end of an attempt that did not complete its step or undo. `ranMs` is the time that the attempt took. */
type Unfinished = Exclude<AttemptEnd<void>, { end: 'done' }> & { ranMs: number };

/** Runs the steps from `next` on, and then the end. Each step is checkpointed before the next one starts. */
export async function runForward<Context, Tx>(execution: Execution<Context, Tx>, next: number): Promise<RunEnd> {
  const { steps } = execution.definition;
  for (let index = next; index < steps.length; index += 1) {
    const step = steps[index];
    if (step === undefined) break;
    if (!execution.begun.includes(step.name)) execution.begun.push(step.name);
    const startedAtMs = performance.now();
    const ended = await runStep(execution, step, index);
    if (ended.end !== 'done')
      return leaveStep(execution, step, index, { ...ended, ranMs: performance.now() - startedAtMs });
    faultpoint(stepPoint(execution.definition.kind, step.name, 'after_checkpoint'));
  }
  return endWorkflow(execution, null);
}

/** Runs one attempt of a step with its checkpoint, in one span. */
function runStep<Context, Tx>(
  execution: Execution<Context, Tx>,
  step: StepDefinition<Context, Tx>,
  index: number,
): Promise<AttemptEnd<void>> {
  const { definition, claim } = execution;
  // `claim` has the attempts of each step from before the claim. The present attempt is counted in the database when
  // the step begins, so it is not in `claim`.
  const row = rowOf(claim, step.name);
  const [attemptNumber, failures] = [(row?.attempts ?? 0) + 1, row?.failures ?? 0];
  const attributes = {
    'workflow.id': claim.id,
    'workflow.kind': claim.kind,
    'workflow.step': step.name,
    'workflow.attempt': attemptNumber,
  };
  const startedAtMs = performance.now();
  const logEnd = logAttempt(execution, step, { what: 'step', attempt: attemptNumber });
  return withSpan(`${definition.kind}.${step.name}`, attributes, context.active(), async (span) => {
    const limits = {
      name: step.name,
      timeoutSeconds: step.timeoutSeconds,
      lease: execution.lease.signal,
      stopping: execution.runner.stopping,
    };
    const ended = await attempt(limits, async (signal) => {
      const given = stepContext(execution, step, { attempt: attemptNumber, failures, signal });
      const output = await effectOf(definition.kind, step, () => step.run(given, execution.runner.context));
      return { given, output };
    });
    const checkpointed = ended.end === 'done' ? await checkpoint(execution, step, index, ended.value) : ended;
    if (checkpointed.end === 'failed') markFailed(span, checkpointed.problem.code);
    else if (checkpointed.end === 'again')
      markFailed(span, checkpointed.error instanceof Error ? checkpointed.error.name : 'unknown');
    else if (checkpointed.end === 'left') markFailed(span, 'LeaseLost');
    logEnd(checkpointed.end);
    stepEnded(definition.kind, step.name, checkpointed.end, (performance.now() - startedAtMs) / 1_000);
    return checkpointed;
  });
}

async function effectOf(kind: string, { name }: { name: string }, run: () => Promise<unknown>): Promise<unknown> {
  faultpoint(stepPoint(kind, name, 'before'));
  const output = await run();
  const again = faultpoint(stepPoint(kind, name, 'after_effect')) === 'repeat';
  return again ? run() : output;
}

interface Effect {
  given: StepContext<unknown, unknown>;
  output: unknown;
}

async function checkpoint<Context, Tx>(
  execution: Execution<Context, Tx>,
  step: StepDefinition<Context, Tx>,
  index: number,
  effect: Effect,
): Promise<AttemptEnd<void>> {
  const { runner, claim, definition } = execution;
  // The run continues with the output as JSON stores it, so that a run that is resumed later sees the same output.
  const output: unknown = JSON.parse(JSON.stringify(effect.output ?? null));
  const next = definition.steps[index + 1]?.name ?? null;
  const done = { step: step.name, output, next, progress: percentDone(definition.steps, index + 1) };
  try {
    if (step.commit === undefined) await completeStep(runner.database.sql(), claim, done);
    else
      await runner.database.transaction(async (tx) => {
        await completeStep(runner.database.sql(tx), claim, done);
        await step.commit?.(tx, effect.given, output, runner.context);
      });
  } catch (error) {
    if (error instanceof LeaseLost) return { end: 'left' };
    return error instanceof StepFailure
      ? { end: 'failed', problem: { internal: error.message, ...error.problem }, error }
      : { end: 'again', error };
  }
  execution.outputs[step.name] = output;
  runner.changed(claim.id);
  return { end: 'done', value: undefined };
}

async function leaveStep<Context, Tx>(
  execution: Execution<Context, Tx>,
  step: StepDefinition<Context, Tx>,
  index: number,
  ended: Unfinished,
): Promise<RunEnd> {
  const row = rowOf(execution.claim, step.name);
  if (ended.end === 'left') return 'left';
  if (ended.end === 'interrupted') return release(execution, { afterSeconds: 0 });
  if (ended.end === 'wait' && (row?.age_seconds ?? 0) < waitMaxSeconds)
    return release(execution, { afterSeconds: ended.seconds });
  if (ended.end === 'failed') {
    tellFailure(execution.log, step.name, ended);
    return failStep(execution, step, index, ended);
  }
  if (ended.end === 'again') await outnumberHosts(execution, ended.error);
  const internal = ended.end === 'wait' ? `still not ready after ${waitMaxSeconds} s` : messageOf(ended.error);
  if (ended.end === 'again' && isOutOfReach(execution, step.name, ended))
    return release(execution, { afterSeconds: backoffSeconds(1) });
  const failures = (row?.failures ?? 0) + 1;
  execution.log.warn({ step: step.name, failures, attempts_max: step.attemptsMax, internal }, 'step attempt failed');
  if (failures >= step.attemptsMax)
    return failStep(execution, step, index, { problem: { code: 'step_failed', internal }, error: undefined });
  return release(execution, { afterSeconds: backoffSeconds(failures), failed: { what: 'step', step: step.name } });
}

function tellFailure(log: Log, step: string, { problem, error }: Extract<AttemptEnd<void>, { end: 'failed' }>): void {
  const what = { step, code: problem.code, internal: problem.internal };
  const alarm = error instanceof StepFailure ? error.alarm : undefined;
  if (alarm === undefined) log.warn(what, 'step failed');
  else log.error({ ...what, alarm }, 'step failed');
}

/**
 * Handles a step that has failed for good. Before the point of no return its workflow is undone. After that point the
 * workflow waits for staff, unless the step has thrown `conclude`.
 */
async function failStep<Context, Tx>(
  execution: Execution<Context, Tx>,
  step: StepDefinition<Context, Tx>,
  index: number,
  { problem, error }: Pick<Extract<AttemptEnd<void>, { end: 'failed' }>, 'problem' | 'error'>,
): Promise<RunEnd> {
  const isConcluded = error instanceof StepFailure && error.isConcluded;
  if (index >= execution.definition.pointOfNoReturn && !isConcluded)
    return park(execution, { step: step.name, problem });
  await beginUndo(execution.runner.database.sql(), execution.claim, step.name, problem);
  execution.runner.changed(execution.claim.id);
  return runUndo(execution, [...execution.begun].reverse(), problem);
}

/**
 * Undoes the steps `names` in this order, records each undo, and ends the workflow as failed with `problem`. If an undo
 * fails for good, staff are called.
 */
export async function runUndo<Context, Tx>(
  execution: Execution<Context, Tx>,
  names: readonly string[],
  problem: WorkflowProblem,
): Promise<RunEnd> {
  for (const name of names) {
    const step = execution.definition.steps.find((candidate) => candidate.name === name);
    if (step?.undo === undefined) continue;
    const startedAtMs = performance.now();
    const ended = await undoStep(execution, step);
    if (ended.end !== 'done')
      return leaveUndo(execution, step, { ...ended, ranMs: performance.now() - startedAtMs }, problem);
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
  const failures = rowOf(claim, step.name)?.undo_failures ?? 0;
  const attemptNumber = failures + 1;
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
      const given = stepContext(execution, step, { attempt: attemptNumber, failures, signal });
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
  ended: Unfinished,
  problem: WorkflowProblem,
): Promise<RunEnd> {
  if (ended.end === 'left') return 'left';
  if (ended.end === 'interrupted') return release(execution, { afterSeconds: 0 });
  if (ended.end === 'wait' && execution.claim.undoing_seconds < waitMaxSeconds)
    return release(execution, { afterSeconds: ended.seconds });
  if (ended.end === 'again' && isOutOfReach(execution, step.name, ended))
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
