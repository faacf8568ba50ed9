import { performance } from 'node:perf_hooks';
import { faultpoint } from '@drydock/process';
import { classifyDatabaseError } from '@drydock/service/database';
import { enginePoints, type Log, logWith } from '../definition/definition';
import { isFenceRefused, LeaseLost, messageOf, type WorkflowProblem } from '../definition/step-error';
import type { Claim, Release, RunEnd } from '../store/claim.types';
import { raiseFences } from '../store/fences';
import { workflowFinished, workflowParked } from '../store/telemetry';
import { failWorkflow, parkWorkflow, releaseClaim, succeedWorkflow } from '../store/workflow-states';
import { type Execution, type Runner, runOf } from './execution';

/** Gives the lease back. The workflow continues later under a new fence, in this worker or another. */
export async function release<Context, Tx>(
  { runner, claim }: Pick<Execution<Context, Tx>, 'runner' | 'claim'>,
  back: Release,
): Promise<RunEnd> {
  await releaseClaim(runner.database.sql(), claim, back);
  runner.changed(claim.id);
  runner.dueIn(back.afterSeconds);
  return 'released';
}

interface Park {
  /** The step that could not continue; null if the failure is not in a step. */
  step: string | null;
  problem: WorkflowProblem;
}

/** Parks the workflow for staff: the workflow stops, its resource stays locked, and staff are called. */
export async function park<Context, Tx>(
  { runner, claim, log }: { runner: Runner<Context, Tx>; claim: Claim; log: Log },
  { step, problem }: Park,
): Promise<RunEnd> {
  const tellService = runner.definitions.get(claim.kind)?.onEnd.parked;
  const alone = (): Promise<void> => parkWorkflow(runner.database.sql(), claim, { step, problem });
  const together = (): Promise<void> =>
    runner.database.transaction(async (tx) => {
      await parkWorkflow(runner.database.sql(tx), claim, { step, problem });
      await tellService?.(tx, runOf(claim, claim.input), runner.context);
    });
  // Staff are called even if the service's own rows cannot be written.
  await (tellService === undefined
    ? alone()
    : together().catch((error: unknown) => {
        if (error instanceof LeaseLost) throw error;
        log.error({ err: error }, 'the service was not told that it waits for staff');
        return alone();
      }));
  workflowParked(claim.kind);
  logWith(log, { alarm: 'needs_attention' }).error(
    { step, code: problem.code, internal: problem.internal },
    'workflow needs attention',
  );
  runner.changed(claim.id);
  return 'needs_attention';
}

/** How long a step or its undo may be postponed. A later postponement counts as a failed attempt. */
export const waitMaxSeconds = 24 * 3_600;

/**
 * Whether the failure uses up no attempt: Postgres, an agent or a storage cannot be reached, and the outage is still
 * short. `ranMs` is the time that the attempt took.
 */
export const isOutOfReach = <Context, Tx>(
  { runner, claim }: Pick<Execution<Context, Tx>, 'runner' | 'claim'>,
  step: string,
  { error, ranMs }: { error: unknown; ranMs: number },
): boolean => classifyDatabaseError(error) === 'unavailable' && runner.outages.isPassing(`${claim.id} ${step}`, ranMs);

/**
 * Raises the fences if a target has refused a fence, because the database may have been restored while workers ran. The
 * next claim then has a higher fence than any target can have seen. If the worker has only lost its claim, raising does
 * no harm.
 */
export async function outnumberHosts<Context, Tx>(
  { runner }: Pick<Execution<Context, Tx>, 'runner'>,
  error: unknown,
): Promise<void> {
  if (isFenceRefused(error)) await raiseFences(runner.database);
}

/**
 * The most attempts to write the end of a workflow, before staff are called. A hook that only writes a few rows fails
 * because Postgres cannot be reached for a while, or because of a bug. After five attempts with pauses a bug is the
 * likely cause.
 */
const endAttemptsMax = 5;

/** Writes the final status and the service's own rows, in one transaction. `problem` is null for a success. */
export async function endWorkflow<Context, Tx>(
  execution: Execution<Context, Tx>,
  problem: WorkflowProblem | null,
): Promise<RunEnd> {
  const { runner, claim, run, definition, log } = execution;
  const status = problem === null ? 'succeeded' : 'failed';
  faultpoint(enginePoints.finishBefore);
  try {
    await runner.database.transaction(async (tx) => {
      const sql = runner.database.sql(tx);
      if (problem === null) {
        await succeedWorkflow(sql, claim);
        await definition.onEnd.succeeded?.(tx, run, runner.context);
      } else {
        await failWorkflow(sql, claim, problem);
        await definition.onEnd.failed?.(tx, run, problem, runner.context);
      }
    });
  } catch (error) {
    return error instanceof LeaseLost ? 'left' : leaveEnding(execution, error);
  }
  workflowFinished(claim.kind, status, claim.age_seconds + (performance.now() - execution.claimedAtMs) / 1_000);
  log.info(
    { status, ...(problem === null ? {} : { code: problem.code, internal: problem.internal }) },
    'workflow finished',
  );
  runner.changed(claim.id);
  return status;
}

async function leaveEnding<Context, Tx>(execution: Execution<Context, Tx>, error: unknown): Promise<RunEnd> {
  const failures = execution.claim.end_failures + 1;
  const internal = `the end could not be written: ${messageOf(error)}`;
  execution.log.warn({ failures, internal }, 'the end could not be written');
  if (failures >= endAttemptsMax) return park(execution, { step: null, problem: { code: 'step_failed', internal } });
  return release(execution, { afterSeconds: backoffSeconds(failures), failed: { what: 'end' } });
}

/**
 * The pause before the next attempt, from 0.5 to 60.5 seconds. It has full jitter, so that workflows that failed
 * together do not retry together.
 */
export function backoffSeconds(failures: number, random: () => number = Math.random): number {
  const ceiling = Math.min(60, 2 ** Math.min(failures, 10));
  return 0.5 + random() * ceiling;
}

/** Remembers since when the steps of this worker have been unable to reach a dependency. */
export interface Outages {
  /**
   * Records that the step `what` could not reach a dependency just now, in an attempt that took `ranMs`. Returns true
   * while the outage is short. Returns false once the outage has lasted too long, and for a long attempt. A long
   * attempt had reached its dependency, and may have brought the dependency down itself. If a long attempt were not
   * counted, the step could bring its dependency down for ever.
   */
  isPassing(what: string, ranMs: number): boolean;
}

/**
 * The longest outage that uses up no attempt, in seconds. A machine restarts and a Postgres fails over in less time. In
 * a longer outage each failure uses up an attempt.
 */
const outageSecondsDefault = 900;

/**
 * The time without a failure after which an outage counts as over. During an outage a step is tried again every few
 * seconds, so a longer silence means that the outage is over. An attempt that took longer than this is a long attempt.
 */
const passedAfterMsDefault = 120_000;

/**
 * Makes a worker's own record of outages. A worker that starts during an outage counts the outage from the first
 * failure that the worker sees.
 */
export function createOutages(secondsMax = outageSecondsDefault, passedAfterMs = passedAfterMsDefault): Outages {
  const met = new Map<string, { sinceMs: number; lastMs: number }>();
  return {
    isPassing: (what, ranMs) => {
      const nowMs = performance.now();
      for (const [other, { lastMs }] of met) if (nowMs - lastMs > passedAfterMs) met.delete(other);
      const sinceMs = met.get(what)?.sinceMs ?? nowMs;
      met.set(what, { sinceMs, lastMs: nowMs });
      return ranMs <= passedAfterMs && nowMs - sinceMs < secondsMax * 1_000;
    },
  };
}
