import type { Database, Sql } from '@drydock/service/database';
import { withoutSpans } from '@drydock/service/telemetry';
import type { WorkflowProblem } from '../definition/step-error';
import type { WorkflowListener } from './listener';
import { readWorkflowById, type VersionedWorkflow } from './read-workflow';
import { cancelUnclaimed, type OnFailed } from './start-workflow';

export interface WatchOptions {
  /** The last version that the client has seen (`Last-Event-ID`). Only newer versions are yielded. */
  afterVersion?: number;
  signal?: AbortSignal;
  listener?: WorkflowListener;
}

/** Milliseconds between two polls. Without a listener, only polls find changes, so they are more frequent. */
const watchPollMs = { listening: 2_000, alone: 400 };

/**
 * Yields new versions of a workflow. Versions may be skipped, except for the last one. Ends when the workflow has
 * succeeded or failed, or when `signal` is aborted, but not while the workflow waits for staff. The caller must have
 * checked that the client may see the workflow.
 */
export async function* watchWorkflow(
  sql: Sql,
  workflowId: string,
  options: WatchOptions = {},
): AsyncGenerator<VersionedWorkflow, void, void> {
  const { listener, signal } = options;
  let seen = options.afterVersion ?? 0;
  const pauses = pausesUntilChange(workflowId, listener, signal);
  try {
    while (signal?.aborted !== true) {
      const current = await withoutSpans(() => readWorkflowById(sql, workflowId));
      if (current === undefined) return;
      if (current.version > seen) {
        seen = current.version;
        yield current;
      }
      if (current.view.status === 'succeeded' || current.view.status === 'failed') return;
      await pauses.pause(listener === undefined ? watchPollMs.alone : watchPollMs.listening);
    }
  } finally {
    pauses.close();
  }
}

export type StepWaited =
  | { state: 'succeeded'; output: unknown }
  /** The step has failed or will not run, unless staff retry the workflow. */
  | { state: 'failed'; problem: Omit<WorkflowProblem, 'internal'> }
  /** No worker claimed the workflow by its `start_by`, so it was cancelled without any effect. */
  | { state: 'cancelled' }
  /**
   * The time was up before the outcome was known. `claimed` says whether a worker has ever claimed the workflow. In
   * either case the step may still be done.
   */
  | { state: 'pending'; claimed: boolean };

export interface StepWaitOptions<Tx> {
  listener?: WorkflowListener;
  /** The hook of the workflow, which is called if this wait cancels it; see {@link cancelUnclaimed}. */
  onFailed?: OnFailed<Tx>;
}

const stepPollMs = { listening: 1_000, alone: 50 };

/**
 * Waits at most `timeoutMs` until a step of a workflow is done, or will not be done unless staff retry the workflow.
 * Must be called outside a transaction, because the wait can cancel the workflow in a transaction of its own.
 */
export async function waitForStep<Tx>(
  database: Database<Tx>,
  workflowId: string,
  stepName: string,
  timeoutMs: number,
  options: StepWaitOptions<Tx> = {},
): Promise<StepWaited> {
  const { listener, onFailed } = options;
  const endsAtMs = performance.now() + timeoutMs;
  const pauses = pausesUntilChange(workflowId, listener);
  try {
    for (;;) {
      const [row] = await withoutSpans(() => database.sql().query<WaitedRow>(waitSql, [workflowId, stepName]));
      if (row === undefined) throw new Error(`there is no workflow ${workflowId}`);
      const known = outcomeOf(row);
      if (known !== undefined) return known;
      const late = row.start_by_ms !== null && row.start_by_ms <= 0 && !row.claimed;
      if (late && (await cancelUnclaimed(database, workflowId, onFailed))) return { state: 'cancelled' };
      const leftMs = endsAtMs - performance.now();
      if (leftMs <= 0) return { state: 'pending', claimed: row.claimed };
      const startByMs =
        row.claimed || row.start_by_ms === null ? Number.POSITIVE_INFINITY : Math.max(row.start_by_ms, 1);
      await pauses.pause(Math.min(leftMs, startByMs, listener === undefined ? stepPollMs.alone : stepPollMs.listening));
    }
  } finally {
    pauses.close();
  }
}

interface WaitedRow {
  status: 'queued' | 'running' | 'succeeded' | 'failed' | 'needs_attention';
  direction: 'forward' | 'undo' | 'abandon';
  claimed: boolean;
  /** Milliseconds until `start_by`, by Postgres' clock; null without a `start_by`. */
  start_by_ms: number | null;
  error: Omit<WorkflowProblem, 'internal'> | null;
  step_status: 'pending' | 'running' | 'succeeded' | 'failed' | 'undone' | null;
  output: unknown;
}

function outcomeOf(row: WaitedRow): StepWaited | undefined {
  if (row.step_status === 'succeeded') return { state: 'succeeded', output: row.output };
  if (row.status === 'failed' && row.error?.code === 'start_by_passed') return { state: 'cancelled' };
  const over =
    row.status === 'failed' ||
    row.status === 'needs_attention' ||
    row.status === 'succeeded' ||
    row.direction !== 'forward';
  return over ? { state: 'failed', problem: row.error ?? { code: 'step_failed' } } : undefined;
}

const waitSql = `
  SELECT workflow.status, direction, fence > 0 AS claimed,
    (extract(epoch FROM start_by - clock_timestamp()) * 1000)::float8 AS start_by_ms, error,
    step.status AS step_status, step.output
  FROM workflow LEFT JOIN workflow_step step ON step.workflow_id = workflow.id AND step.name = $2
  WHERE workflow.id = $1::uuid`;

export interface Pauses {
  /**
   * Resolves once the workflow has changed, `ms` have passed or `signal` is aborted. A change since the last pause
   * resolves the promise at once.
   */
  pause(ms: number): Promise<void>;
  close(): void;
}

/** With a listener, a change of the workflow ends a pause early. `signal` ends a pause early in any case. */
export function pausesUntilChange(workflowId: string, listener?: WorkflowListener, signal?: AbortSignal): Pauses {
  let missed = false;
  let wake = (): void => {
    missed = true;
  };
  const heard = (): void => wake();
  const forget = listener?.onChange(workflowId, heard);
  signal?.addEventListener('abort', heard);
  return {
    pause: (ms) =>
      new Promise((resolve) => {
        const timer = setTimeout(end, missed || signal?.aborted === true ? 0 : ms);
        function end(): void {
          clearTimeout(timer);
          missed = false;
          wake = () => {
            missed = true;
          };
          resolve();
        }
        wake = end;
      }),
    close: () => {
      forget?.();
      signal?.removeEventListener('abort', heard);
    },
  };
}
