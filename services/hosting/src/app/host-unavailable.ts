import { problem } from '@drydock/contracts/platform/problem';

/** The site's host was asked and did not answer. Nothing was started. */
export function hostUnavailable(cause: unknown): never {
  throw problem('dependency_unavailable', { extra: { dependency: 'site-host' }, retryAfterSeconds: 5, cause });
}
