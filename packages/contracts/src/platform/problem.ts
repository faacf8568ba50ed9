import { type ProblemBody, type ProblemCode, type ProblemField, problems } from './problems';

export interface ProblemDetails {
  /**
   * The text for the caller about what is wrong with this request. It must contain no text of a provider, and no SQL,
   * path or stack trace. By default it is the advice of the code.
   */
  detail?: string;
  /** A text for the log only. */
  internal?: string;
  errors?: ProblemField[];
  /** Members in addition to the standard members, such as `workflow_id`. */
  extra?: Record<string, unknown>;
  /** Seconds for `Retry-After`, at least 1. */
  retryAfterSeconds?: number;
  cause?: unknown;
}

/**
 * A refusal with a stable code. Everything that an endpoint calls may throw it. packages/service turns it into an HTTP
 * answer.
 */
export class Problem extends Error {
  readonly code: ProblemCode;
  readonly details: ProblemDetails;

  constructor(code: ProblemCode, details: ProblemDetails = {}) {
    super(details.internal ?? details.detail ?? problems[code].title, { cause: details.cause });
    this.name = 'Problem';
    this.code = code;
    this.details = details;
  }

  get status(): number {
    return problems[this.code].status;
  }

  /** The body of the answer, of type application/problem+json. */
  body(requestId: string): ProblemBody {
    const { title, status, advice } = problems[this.code];
    const { detail = advice, errors, extra = {} } = this.details;
    return {
      type: `/problems/${this.code}`,
      title,
      status,
      detail,
      code: this.code,
      request_id: requestId,
      ...(errors === undefined ? {} : { errors }),
      ...extra,
    };
  }
}

export const problem = (code: ProblemCode, details: ProblemDetails = {}): Problem => new Problem(code, details);
