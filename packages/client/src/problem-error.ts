import type { components } from './generated/openapi';

export type Problem = components['schemas']['Problem'];
export type ProblemCode = Problem['code'];

/** Drydock refused the call or failed: the answer is a problem document. Programs decide by `code`. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  readonly status: number;
  readonly code: ProblemCode;
  /** The `X-Request-Id` of the answer. Support finds the request by this id. */
  readonly requestId: string;
  /** The invalid fields of the request. Empty if the refusal has another reason. */
  readonly errors: NonNullable<Problem['errors']>;
  /** The whole problem document. Some codes have extra members, such as `workflow_id`. */
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

/** The call got no answer from Drydock: the connection failed, or a proxy answered instead. `cause` has the reason. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

export type Workflow = components['schemas']['Workflow'];

/**
 * A workflow did not succeed. `workflow.error` has the reason. With the status `needs_attention` the workflow waits for
 * Drydock's staff.
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

/** A workflow did not end within `timeoutMs`. The workflow continues, and `wait` can be called again. */
export class WaitTimeoutError extends Error {
  override readonly name = 'WaitTimeoutError';
  readonly workflow: Workflow;

  constructor(workflow: Workflow) {
    super(`${workflow.kind} is ${workflow.status} at ${workflow.progress} %; it goes on`);
    this.workflow = workflow;
  }
}
