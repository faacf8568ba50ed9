import { performance } from 'node:perf_hooks';
import type { Database, Sql } from '@drydock/service/database';
import { withoutSpans } from '@drydock/service/telemetry';
import {
  type Log,
  logWith,
  type StepContext,
  type StepDefinition,
  type WorkflowDefinition,
  type WorkflowRun,
} from '../definition/definition';
import { LeaseLost, messageOf } from '../definition/step-error';
import type { Claim, ClaimKey, StepRow } from '../store/claim.types';
import { renewLease, reportProgress } from '../store/workflow-states';
import type { Outages } from './leave-claim';

interface HeldLease {
  /** Aborted with {@link LeaseLost} when the workflow may belong to another worker. */
  signal: AbortSignal;
  /** Stops the renewals. Resolves when a running renewal has ended. */
  release(): Promise<void>;
}

/**
 * Renews the lease after each third of its duration until `release` is called. The lease is lost if Postgres says so,
 * or if it has run out while renewals failed. The end of the lease is computed on the monotonic clock, from the moment
 * before the claim or the last successful renewal was sent. So the computed end is never later than the end that
 * Postgres has recorded.
 */
export function keepLease(
  sql: Sql,
  claim: ClaimKey,
  options: { leaseSeconds: number; claimedAtMs: number; log: Log },
): HeldLease {
  const lost = new AbortController();
  const leaseMs = options.leaseSeconds * 1_000;
  let endsAtMs = options.claimedAtMs + leaseMs;
  let renewal: Promise<void> = Promise.resolve();
  let busy = false;
  const lose = (why: string): void => {
    clearInterval(timer);
    if (lost.signal.aborted) return;
    options.log.warn({ why }, 'lease lost');
    lost.abort(new LeaseLost(claim.id));
  };
  const renew = async (): Promise<void> => {
    const sentAtMs = performance.now();
    if (sentAtMs > endsAtMs) {
      // The process was frozen or disconnected. Only Postgres knows whether another worker has the workflow, so this
      // renewal decides.
      options.log.warn({ late_ms: Math.round(sentAtMs - endsAtMs) }, 'lease overdue');
    }
    try {
      await withoutSpans(() => renewLease(sql, claim, options.leaseSeconds));
      endsAtMs = sentAtMs + leaseMs;
    } catch (error) {
      if (error instanceof LeaseLost) lose('claimed by somebody else, or ended');
      else if (performance.now() > endsAtMs) lose(`no renewal within the lease: ${messageOf(error)}`);
    }
  };
  const timer = setInterval(() => {
    if (busy) {
      if (performance.now() > endsAtMs) lose('Postgres does not answer');
      return;
    }
    busy = true;
    renewal = renew().finally(() => {
      busy = false;
    });
  }, leaseMs / 3);
  return {
    signal: lost.signal,
    release: async () => {
      clearInterval(timer);
      await renewal;
    },
  };
}

/** The parts of a worker process that all of its workflows share. */
export interface Runner<Context, Tx> {
  database: Database<Tx>;
  context: Context;
  definitions: ReadonlyMap<string, WorkflowDefinition<Context, Tx>>;
  leaseSeconds: number;
  crashesMax: number;
  outages: Outages;
  log: Log;
  /** Aborted when the process begins to stop. */
  stopping: AbortSignal;
  /**
   * Announces that a workflow has changed. It must be called after the commit, so that listeners read the new state.
   */
  changed(workflowId: string): void;
  /** Tells the sweep that something will be due in `seconds`. */
  dueIn(seconds: number): void;
}

/** The work on one claim. */
export interface Execution<Context, Tx> {
  runner: Runner<Context, Tx>;
  definition: WorkflowDefinition<Context, Tx>;
  claim: Claim;
  /** The time just before the claim, on the monotonic clock. */
  claimedAtMs: number;
  run: WorkflowRun<unknown>;
  lease: HeldLease;
  log: Log;
  outputs: Record<string, unknown>;
  /** The names of the steps that were begun and not undone, in order. */
  begun: string[];
}

export const runOf = (claim: Claim, input: unknown): WorkflowRun<unknown> => ({
  workflowId: claim.id,
  orgId: claim.org_id,
  mode: claim.mode,
  subject: { type: claim.subject_type, id: claim.subject_id },
  input,
  actorKeyId: claim.actor_key_id,
  requestId: claim.request_id,
});

export const rowOf = (claim: Claim, step: string): StepRow | undefined => claim.steps.find((row) => row.name === step);

const progressPauseMs = 500;

export function stepContext<Context, Tx>(
  execution: Execution<Context, Tx>,
  step: StepDefinition<Context, Tx>,
  now: { attempt: number; failures: number; signal: AbortSignal },
): StepContext<unknown, unknown> {
  const { definition, runner, claim, run, outputs, log } = execution;
  const index = definition.steps.indexOf(step);
  let nextWriteMs = 0;
  let shown = percentDone(definition.steps, index);
  const progress = (fraction: number): void => {
    const percent = percentDone(definition.steps, index, fraction);
    const nowMs = performance.now();
    if (percent <= shown || nowMs < nextWriteMs || now.signal.aborted) return;
    shown = percent;
    nextWriteMs = nowMs + progressPauseMs;
    withoutSpans(() => reportProgress(runner.database.sql(), claim, percent)).then(
      () => runner.changed(claim.id),
      () => log.debug({ step: step.name }, 'progress was not written'),
    );
  };
  return {
    ...run,
    outputs: { ...outputs },
    fence: claim.fence,
    ...now,
    progress,
    log: logWith(log, { step: step.name }),
  };
}

/**
 * The progress of a whole workflow from 0 to 99: the completed steps and a part of the current one, by weight. 100 is
 * reserved for the end.
 */
export function percentDone(steps: readonly { weight: number }[], completed: number, fraction = 0): number {
  const total = steps.reduce((sum, step) => sum + step.weight, 0);
  const before = steps.slice(0, completed).reduce((sum, step) => sum + step.weight, 0);
  const current = (steps[completed]?.weight ?? 0) * Math.min(1, Math.max(0, fraction));
  return total > 0 ? Math.min(99, Math.floor((100 * (before + current)) / total)) : 0;
}
