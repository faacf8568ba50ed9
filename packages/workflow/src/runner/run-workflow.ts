import { performance } from 'node:perf_hooks';
import { routineAttribute } from '@drydock/service/telemetry';
import { trace } from '@opentelemetry/api';
import { z } from 'zod';
import { logWith, type WorkflowDefinition } from '../definition/definition';
import { LeaseLost, messageOf, type WorkflowProblem } from '../definition/step-error';
import type { WorkflowJob } from '../dispatch/queue';
import type { Claim, RunEnd } from '../store/claim.types';
import { claimedAfter, contextForRow, leaseLost, withSpan } from '../store/telemetry';
import { beginStep, claimWorkflow, relistSteps } from '../store/workflow-states';
import { type Execution, keepLease, type Runner, runOf } from './execution';
import { backoffSeconds, endWorkflow, park, release } from './leave-claim';
import { planRun, planUndo } from './plan-run.rules';
import { runForward, runUndo } from './run-steps';

/**
 * Runs one job: claims the workflow if it is due and runs it as far as possible. Several jobs may name the same
 * workflow. Rejects only if the claim failed; the sweep then enqueues another job.
 */
export async function runWorkflow<Context, Tx>(
  runner: Runner<Context, Tx>,
  stepNamesByKind: string,
  job: WorkflowJob,
): Promise<RunEnd> {
  const claimedAtMs = performance.now();
  const limits = { leaseSeconds: runner.leaseSeconds, crashesMax: runner.crashesMax, stepNamesByKind };
  const claim = await claimWorkflow(runner.database.sql(), job, limits);
  if (claim === undefined) return 'ignored';
  claimedAfter(claim.kind, Math.max(0, claim.delay_seconds));
  runner.changed(claim.id);
  const isRoutine = runner.definitions.get(claim.kind)?.isRoutine ?? false;
  const about = { 'workflow.id': claim.id, 'workflow.kind': claim.kind, 'workflow.fence': claim.fence };
  const attributes = { ...about, 'drydock.request_id': claim.request_id, [routineAttribute]: isRoutine };
  return withSpan(`run ${claim.kind}`, attributes, contextForRow(claim.traceparent), async (span) => {
    const end = await runClaim(runner, claim, claimedAtMs);
    if (end === 'left') {
      leaseLost(claim.kind);
      runner.log.warn({ workflow_id: claim.id, fence: claim.fence }, 'stopped: the claim is no longer ours');
    }
    span.setAttribute('workflow.end', end);
    return end;
  });
}

async function runClaim<Context, Tx>(runner: Runner<Context, Tx>, claim: Claim, claimedAtMs: number): Promise<RunEnd> {
  const log = logWith(runner.log, {
    workflow_id: claim.id,
    kind: claim.kind,
    org_id: claim.org_id,
    request_id: claim.request_id,
    fence: claim.fence,
  });
  const lease = keepLease(runner.database.sql(), claim, { leaseSeconds: runner.leaseSeconds, claimedAtMs, log });
  try {
    const ready = readyOf(runner, claim);
    if (typeof ready === 'string')
      return await park({ runner, claim, log }, { step: null, problem: { code: 'step_failed', internal: ready } });
    const begun = claim.steps.filter((row) => row.attempts > 0 && !row.undone).map((row) => row.name);
    const outputs = Object.fromEntries(
      claim.steps.filter((row) => row.status === 'succeeded').map((row) => [row.name, row.output]),
    );
    const run = runOf(claim, ready.input);
    return await carryOn({ runner, definition: ready.definition, claim, claimedAtMs, run, lease, log, outputs, begun });
  } catch (error) {
    if (error instanceof LeaseLost || lease.signal.aborted) return 'left';
    log.error({ err: error, internal: messageOf(error) }, 'workflow interrupted');
    trace.getActiveSpan()?.setAttribute('error.type', error instanceof Error ? error.name : 'unknown');
    return await release({ runner, claim }, { afterSeconds: backoffSeconds(1) }).catch(() => 'left' as const);
  } finally {
    await lease.release();
  }
}

/** The definition and the parsed input, or the reason why this worker cannot continue the workflow. */
function readyOf<Context, Tx>(
  runner: Runner<Context, Tx>,
  claim: Claim,
): { definition: WorkflowDefinition<Context, Tx>; input: unknown } | string {
  // Staff can abandon a workflow even if its kind is unknown or its input is unreadable. In that case no hook is
  // called.
  const unreadable = (why: string) =>
    claim.direction === 'abandon' ? { definition: withoutHooks(claim.kind), input: claim.input } : why;
  const definition = runner.definitions.get(claim.kind);
  if (definition === undefined) return unreadable(`this worker knows no workflow of kind ${claim.kind}`);
  const input = definition.input.safeParse(claim.input);
  if (!input.success) return unreadable(`the input is not what ${claim.kind} takes: ${input.error.message}`);
  if (claim.consecutive_crashes >= runner.crashesMax) return `${runner.crashesMax} workers in a row died over it`;
  return { definition, input: input.data };
}

async function carryOn<Context, Tx>(execution: Execution<Context, Tx>): Promise<RunEnd> {
  const { claim, definition, runner, log } = execution;
  const mismatch = (reason: string): Promise<RunEnd> =>
    park({ runner, claim, log }, { step: null, problem: { code: 'step_failed', internal: reason } });
  if (claim.direction === 'abandon') return endWorkflow(execution, recordedProblem(claim));
  if (claim.direction === 'undo') {
    const undo = planUndo(
      claim.steps,
      definition.steps.map((step) => step.name),
    );
    return undo === undefined
      ? mismatch('a step to be undone is not in the code of today')
      : runUndo(execution, undo, recordedProblem(claim));
  }
  const plan = planRun(claim.steps, definition.steps);
  if (!plan.go) return mismatch(plan.reason);
  const next = definition.steps[plan.next]?.name;
  if (plan.relist) {
    await relistSteps(
      runner.database.sql(),
      claim,
      plan.names,
      Object.fromEntries(claim.steps.map((row) => [row.name, row.attempts])),
    );
    if (next !== undefined) await beginStep(runner.database.sql(), claim, next);
  }
  return runForward(execution, plan.next);
}

const withoutHooks = (kind: string): WorkflowDefinition<unknown, unknown> => ({
  kind,
  input: z.unknown(),
  steps: [],
  pointOfNoReturn: 0,
  onEnd: {},
});

const recordedProblem = (claim: Claim): WorkflowProblem => ({
  ...(claim.error ?? { code: 'step_failed' }),
  ...(claim.error_internal === null ? {} : { internal: claim.error_internal }),
});
