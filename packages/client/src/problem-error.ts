import type { components } from './generated/openapi';

export type Problem = components['schemas']['Problem'];
export type ProblemCode = Problem['code'];

/** An answer with status 400 or above. Decide by `code`. The message says what is wrong and what to do. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  /** HTTP status. */
  readonly status: number;
  readonly code: ProblemCode;
  /** X-Request-Id of the answer, for support. */
  readonly requestId: string;
  /** The fields that are wrong. */
  readonly errors: NonNullable<Problem['errors']>;
  /** The whole body. Some codes have extra members, such as `workflow_id`. */
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(`${problem.title}. ${problem.detail} (${problem.code}, request ${problem.request_id})`);
    this.status = problem.status;
    this.code = problem.code;
    this.requestId = problem.request_id;
    this.errors = problem.errors ?? [];
    this.problem = problem;
  }
}

/**
 * The call got no answer from Drydock: the connection failed, or something in between answered. `cause` has the reason.
 */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

export type Workflow = components['schemas']['Workflow'];

/**
 * Long-running work did not succeed. `workflow.error` contains the reason. A workflow with the status needs_attention
 * waits for staff.
 */
export class WorkflowError extends Error {
  override readonly name = 'WorkflowError';
  readonly workflow: Workflow;

  constructor(workflow: Workflow) {
    super(
      workflow.error === null
        ? `${workflow.kind} ended as ${workflow.status}`
        : `${workflow.error.title}. ${workflow.error.detail}`,
    );
    this.workflow = workflow;
  }
}

/** Long-running work did not end within `timeoutMs`. It continues. Wait for `workflow.id` again. */
export class WaitTimeoutError extends Error {
  override readonly name = 'WaitTimeoutError';
  readonly workflow: Workflow;

  constructor(workflow: Workflow) {
    super(`${workflow.kind} is ${workflow.status} at ${workflow.progress} %; it goes on`);
    this.workflow = workflow;
  }
}
