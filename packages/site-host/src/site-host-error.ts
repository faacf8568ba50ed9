/** Every refusal of the control protocol with its status. `unreachable` is the client's own: the outcome of the call is then unknown. */
const statuses = {
  invalid_request: 422,
  unauthenticated: 401,
  unknown_route: 404,
  unknown_site: 404,
  unknown_release: 404,
  stale_fence: 409,
  release_mismatch: 409,
  release_is_current: 409,
  site_unfinished: 409,
  no_app: 409,
  restart_blocked: 409,
  internal: 500,
  unreachable: 503,
} as const;

export type SiteHostErrorCode = keyof typeof statuses;

export const isSiteHostErrorCode = (code: string): code is SiteHostErrorCode => Object.hasOwn(statuses, code);

/** A refusal with a stable code; `message` is for logs and may name what was wrong. */
export class SiteHostError extends Error {
  override readonly name = 'SiteHostError';
  readonly code: SiteHostErrorCode;

  constructor(code: SiteHostErrorCode, detail: string, options?: ErrorOptions) {
    super(detail, options);
    this.code = code;
  }

  get status(): number {
    return statuses[this.code];
  }
}
