import type { Database } from '@drydock/service/database/sql';
import type { Claim, StepRow } from './claim';
import type { StepContext, StepDefinition, WorkflowDefinition, WorkflowRun } from './definition';
import type { Hold } from './fenced';
import type { HeldLease } from './lease';
import { reportProgress } from './lease.store';
import { type Log, logWith } from './log';
import type { Outages } from './outages';
import { percentDone } from './percent';

/** What a worker process has, the same for all of its workflows. */
export interface Runner<Context, Tx> {
  database: Database<Tx>;
  /** What every step is given beside its run. */
  context: Context;
  definitions: ReadonlyMap<string, WorkflowDefinition<Context, Tx>>;
  leaseSeconds: number;
  /** Workers in a row that may die over one workflow before it is taken for poison. */
  deathsMax: number;
  outages: Outages;
  log: Log;
  /** Aborted when the process is going to end. */
  stopping: AbortSignal;
  /** Tells watchers that a workflow has changed; after the commit, never in the way. */
  changed(workflowId: string): void;
  /** Something will be due in so many seconds. */
  dueIn(seconds: number): void;
}

/** One claim being worked on. */
export interface Execution<Context, Tx> {
  runner: Runner<Context, Tx>;
  definition: WorkflowDefinition<Context, Tx>;
  hold: Hold;
  claim: Claim;
  run: WorkflowRun<unknown>;
  lease: HeldLease;
  log: Log;
  outputs: Record<string, unknown>;
  /** Names of the steps that have ever been begun and not been undone, in order. */
  begun: string[];
}

/** How a claim ended: what the log, the span and the tests see. */
export type RunEnd = 'ignored' | 'succeeded' | 'failed' | 'needs_attention' | 'handed_back' | 'left';

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

/** At most two writes a second for one step. */
const progressPauseMs = 500;

export function stepContext<Context, Tx>(
  execution: Execution<Context, Tx>,
  step: StepDefinition<Context, Tx>,
  now: { attempt: number; signal: AbortSignal },
): StepContext<unknown, unknown> {
  const { definition, runner, hold, run, outputs, log } = execution;
  const index = definition.steps.indexOf(step);
  let nextWriteMs = 0;
  let shown = percentDone(definition.steps, index);
  const progress = (fraction: number): void => {
    const percent = percentDone(definition.steps, index, fraction);
    const nowMs = performance.now();
    if (percent <= shown || nowMs < nextWriteMs || now.signal.aborted) return;
    shown = percent;
    nextWriteMs = nowMs + progressPauseMs;
    reportProgress(runner.database.sql(), hold, percent).then(
      () => runner.changed(hold.id),
      () => log.debug({ step: step.name }, 'progress was not written'),
    );
  };
  return { ...run, outputs: { ...outputs }, fence: hold.fence, ...now, progress, log: logWith(log, { step: step.name }) };
}
