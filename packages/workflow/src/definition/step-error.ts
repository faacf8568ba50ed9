import type { ProblemCode } from '@drydock/contracts/platform/problems';

/** A permanent failure: `code`, `detail` and `extra` are for the customer, `internal` for staff and the log. */
export interface WorkflowProblem {
  code: ProblemCode;
  detail?: string;
  extra?: Record<string, unknown>;
  internal?: string;
}

/** The error of a permanent failure. The attempt is not repeated. */
export class StepFailure extends Error {
  readonly problem: WorkflowProblem;
  /** Whether the failure comes from {@link conclude}. */
  readonly isConcluded: boolean;
  /** The name of the alarm with which the failure is logged to call staff. Undefined if staff are not needed. */
  readonly alarm: string | undefined;
  constructor(problem: WorkflowProblem, options: ErrorOptions & { isConcluded?: boolean; alarm?: string } = {}) {
    super(problem.internal ?? problem.detail ?? problem.code, options);
    this.name = 'StepFailure';
    this.problem = problem;
    this.isConcluded = options.isConcluded ?? false;
    this.alarm = options.alarm;
  }
}

/** Thrown by a step whose target is not ready yet; see {@link retryLater}. */
export class StepWait extends Error {
  readonly seconds: number;
  constructor(seconds: number) {
    super(`to be continued in ${seconds} s`);
    this.name = 'StepWait';
    this.seconds = seconds;
  }
}

/**
 * Fails the step for good: `throw fail('backup_tampered', { internal })`. The step is not retried. Before the point of
 * no return the workflow is undone, and after it staff are called.
 */
export function fail(
  code: ProblemCode,
  options: {
    internal?: string;
    detail?: string;
    extra?: Record<string, unknown>;
    cause?: unknown;
    alarm?: string;
  } = {},
): StepFailure {
  const { cause, alarm, ...rest } = options;
  return new StepFailure(
    { code, ...rest },
    { ...(cause !== undefined && { cause }), ...(alarm !== undefined && { alarm }) },
  );
}

/**
 * Fails the step as {@link fail} does, but the workflow is undone and ends as failed even after the point of no return.
 * It is for a refusal or a failure that the target itself has reported, so that staff need not investigate.
 */
export const conclude = (
  code: ProblemCode,
  options: { internal?: string; detail?: string; extra?: Record<string, unknown> } = {},
): StepFailure => new StepFailure({ code, ...options }, { isConcluded: true });

/**
 * Postpones the step: `throw retryLater({ seconds })`. The step runs again after that time, under a new fence, without
 * using up an attempt. A step may be postponed for 24 hours after its first start. An undo may be postponed for 24
 * hours after the workflow began to be undone. Each retry by staff gives another 24 hours. After that time, a
 * postponement counts as a failed attempt.
 */
export const retryLater = ({ seconds }: { seconds: number }): StepWait => new StepWait(seconds);

/**
 * Thrown if the worker's claim is no longer valid, or if its lease could not be renewed in time. The worker must stop
 * at once.
 */
export class LeaseLost extends Error {
  constructor(workflowId: string) {
    super(`the lease of workflow ${workflowId} is lost`);
    this.name = 'LeaseLost';
  }
}

export class StepTimeout extends Error {
  constructor(step: string, seconds: number) {
    super(`${step} took longer than ${seconds} s`);
    this.name = 'StepTimeout';
  }
}

/**
 * The text, cut to `charsMax` characters with an ellipsis after them. A cut through a surrogate pair leaves no half of
 * the pair, because Postgres and the keys service refuse a text that contains one.
 */
export const cutText = (text: string, charsMax: number): string =>
  text.length > charsMax ? `${text.slice(0, charsMax).toWellFormed()}…` : text;

const reasonCharsMax = 500;

/**
 * The reason of a refusal as it is shown to customers. It is cut, because a database's error may quote a whole
 * statement.
 */
export const shortReason = (reason: string): string => cutText(reason, reasonCharsMax);

export const messageOf = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error);

/**
 * Whether a target has refused the workflow's fence because the target has seen a higher fence. Either another worker
 * has claimed the workflow since, or the service's database was restored to an earlier state.
 */
export const isFenceRefused = (error: unknown): boolean =>
  error instanceof Error && 'refusal' in error && error.refusal === 'stale_fence';
