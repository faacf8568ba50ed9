import { commonStatuses, HostError } from '../host/host-error';

export const siteHostStatuses = {
  ...commonStatuses,
  unknown_site: 404,
  unknown_release: 404,
  release_mismatch: 409,
  release_is_current: 409,
  site_unfinished: 409,
  no_app: 409,
  restart_blocked: 409,
  database_not_offered: 409,
  sandbox_unavailable: 503,
} as const;

export type SiteHostErrorCode = keyof typeof siteHostStatuses;

/** A refusal by a site host, or its silence. */
export class SiteHostError extends HostError<SiteHostErrorCode> {
  override readonly name = 'SiteHostError';
}
