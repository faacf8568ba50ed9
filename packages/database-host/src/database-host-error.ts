/** Every refusal of the control protocol with its status. `unreachable` is the client's own: the outcome of the call is then unknown. */
const statuses = {
  invalid_request: 422,
  unauthenticated: 401,
  unknown_route: 404,
  unknown_database: 404,
  unknown_upgrade: 404,
  major_not_installed: 422,
  precheck_failed: 422,
  stale_fence: 409,
  database_unfinished: 409,
  upgrade_mismatch: 409,
  already_switched: 409,
  not_caught_up: 409,
  instance_down: 503,
  internal: 500,
  unreachable: 503,
} as const;

export type DatabaseHostErrorCode = keyof typeof statuses;

export const isDatabaseHostErrorCode = (code: string): code is DatabaseHostErrorCode => Object.hasOwn(statuses, code);

/** A refusal with a stable code; `message` is for logs and may name what was wrong. */
export class DatabaseHostError extends Error {
  override readonly name = 'DatabaseHostError';
  readonly code: DatabaseHostErrorCode;

  constructor(code: DatabaseHostErrorCode, detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.code = code;
  }

  get status(): number {
    return statuses[this.code];
  }
}
