import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from './internal-token';

/**
 * Throws 403 with every missing permission. It does not look at the object: a caller without the permission does not
 * learn whether it exists.
 */
export function authorise(permissions: readonly string[], caller: Caller): void {
  const missing = permissions.filter((permission) => !caller.scopes.includes(permission));
  if (missing.length === 0) return;
  throw problem('permission_denied', {
    errors: missing.map((permission) => ({ pointer: '', code: 'permission_missing', detail: permission })),
  });
}
