import type { components } from './generated/openapi';

export type Problem = components['schemas']['Problem'];
export type ProblemCode = Problem['code'];

/** An answer with status 400 or above. Programs decide by `code`; the message is for people. */
export class ProblemError extends Error {
  override readonly name = 'ProblemError';
  /** HTTP status. */
  readonly status: number;
  readonly code: ProblemCode;
  /** X-Request-Id of the answer, for support. */
  readonly requestId: string;
  /** The invalid fields. */
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

/** The call got no answer from Drydock: the connection failed, or a proxy answered instead. `cause` has the reason. */
export class ConnectionError extends Error {
  override readonly name = 'ConnectionError';
}

export type Workflow = components['schemas']['Workflow'];

/**
 * A workflow did not succeed. `workflow.error` has the reason. The status needs_attention means that the workflow waits
 * for staff.
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

/** A workflow did not end within `timeoutMs`. It continues, and can be waited for again. */
export class WaitTimeoutError extends Error {
  override readonly name = 'WaitTimeoutError';
  readonly workflow: Workflow;

  constructor(workflow: Workflow) {
    super(`${workflow.kind} is ${workflow.status} at ${workflow.progress} %; it goes on`);
    this.workflow = workflow;
  }
}
