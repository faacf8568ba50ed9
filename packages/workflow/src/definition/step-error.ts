import type { ProblemCode } from '@drydock/contracts/platform/problems';

/** A permanent failure: `code`, `detail` and `extra` are for the customer, `internal` for staff and the log. */
export interface WorkflowProblem {
  code: ProblemCode;
  detail?: string;
  extra?: Record<string, unknown>;
  internal?: string;
}

/** A definite failure: never retried. */
export class StepFailure extends Error {
  readonly problem: WorkflowProblem;
  /** The target itself has reported the end: see {@link conclude}. */
  readonly isConcluded: boolean;
  /** The name of the alarm in the log, which calls staff. */
  readonly alarm: string | undefined;
  constructor(problem: WorkflowProblem, options: ErrorOptions & { isConcluded?: boolean; alarm?: string } = {}) {
    super(problem.internal ?? problem.detail ?? problem.code, options);
    this.name = 'StepFailure';
    this.problem = problem;
    this.isConcluded = options.isConcluded ?? false;
    this.alarm = options.alarm;
  }
}

/** Postpones the step because its target is not ready yet. It is no failure. */
export class StepWait extends Error {
  readonly seconds: number;
  constructor(seconds: number) {
    super(`to be continued in ${seconds} s`);
    this.name = 'StepWait';
    this.seconds = seconds;
  }
}

/**
 * `throw fail('backup_tampered', { internal })` in a step: no retry; steps are undone, or after the point of no return
 * staff are called.
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
 * Fails the step as {@link fail} does, but may be thrown after the point of no return too. The target has refused, or
 * has reported that its part failed, so staff have nothing to find out. Steps that can be undone are undone, and the
 * workflow ends as failed instead of waiting for staff.
 */
export const conclude = (
  code: ProblemCode,
  options: { internal?: string; detail?: string; extra?: Record<string, unknown> } = {},
): StepFailure => new StepFailure({ code, ...options }, { isConcluded: true });

/**
 * Thrown by a step as `throw retryLater({ seconds })`: the step runs again after that time, under a new fence, without
 * using up its attempts. A step may wait in this way for 24 hours since its first start. After that it counts as a
 * failed attempt.
 */
export const retryLater = ({ seconds }: { seconds: number }): StepWait => new StepWait(seconds);

/** The claim belongs to another worker, or its lease could not be renewed in time: stop at once. */
export class LeaseLost extends Error {
  constructor(workflowId: string) {
    super(`the lease of workflow ${workflowId} is lost`);
    this.name = 'LeaseLost';
  }
}

/** One attempt of a step took longer than its `timeoutSeconds`. */
export class StepTimeout extends Error {
  constructor(step: string, seconds: number) {
    super(`${step} took longer than ${seconds} s`);
    this.name = 'StepTimeout';
  }
}

export const messageOf = (error: unknown): string =>
  error instanceof Error ? `${error.name}: ${error.message}` : String(error);

/**
 * Whether a target has refused our fence because it has seen a higher one. Then either another worker has claimed the
 * workflow since, or our database is older than the target. Drivers throw an error with this name.
 */
export const isFenceRefused = (error: unknown): boolean =>
  error instanceof Error && 'refusal' in error && error.refusal === 'stale_fence';
