/**
 * The codes with which every agent may refuse a call, and their HTTP statuses. `unreachable` is thrown by the client
 * itself; the outcome of the call is then unknown.
 */
export const commonStatuses = {
  invalid_request: 422,
  unauthenticated: 401,
  readers_only_ask: 403,
  unknown_route: 404,
  stale_fence: 409,
  unknown_job: 404,
  job_differs: 409,
  no_channel: 409,
  internal: 500,
  unreachable: 503,
} as const;

export type CommonCode = keyof typeof commonStatuses;

/**
 * A refusal with a stable code. `message` is for logs and may name the cause. Each kind of agent has a subclass with
 * its own codes in addition to the common codes.
 */
export class HostError<Code extends string = CommonCode> extends Error {
  override readonly name: string = 'HostError';
  readonly code: Code;

  constructor(code: Code, detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.code = code;
  }
}
