import { isPermission, type Permission, permissions } from '@drydock/contracts/platform/permissions';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { ProblemField } from '@drydock/contracts/platform/problems';
import type { Mode } from '@drydock/contracts/platform/values';
import type { KeyRights } from './api-key.types';

/** What is left of a key's scopes once every organisation from the root down has had its say. */
export const effectiveScopes = ({ scopes, allowedByEach }: KeyRights): Permission[] =>
  scopes.filter(isPermission).filter((scope) => allowedByEach.every((allowed) => allowed.includes(scope)));

/** In the order of the registry and once each, however they were asked for. */
export const normaliseScopes = (scopes: readonly string[]): Permission[] => permissions.filter((permission) => scopes.includes(permission));

const fields = (scopes: readonly string[], isRefused: (scope: string) => boolean, code: string, detail: string): ProblemField[] =>
  scopes.flatMap((scope, index) => (isRefused(scope) ? [{ pointer: `/scopes/${index}`, code, detail: `${scope}: ${detail}` }] : []));

export interface MintRequest {
  callerMode: Mode;
  /** What the calling key may do right now. */
  held: readonly string[];
  /** What the target organisation and each above it is allowed; null when it is out of the caller's reach, or not there. */
  targetAllows: ReadonlySet<string> | null;
  scopes: readonly string[];
  sandbox: boolean;
}

/** Why this key may not be minted, or null. A key never holds more than its creator does in the organisation that it is for. */
export function refuseMint({ callerMode, held, targetAllows, scopes, sandbox }: MintRequest): Problem | null {
  const unknown = fields(scopes, (scope) => !isPermission(scope), 'unknown_scope', 'there is no such permission');
  if (unknown.length > 0) return problem('unknown_scope', { errors: unknown });
  if (callerMode === 'sandbox' && !sandbox) return problem('sandbox_key');
  if (targetAllows === null) return problem('org_out_of_scope');
  if (!targetAllows.has('apikeys.manage')) {
    const errors = [{ pointer: '/org_id', code: 'permission_missing', detail: 'apikeys.manage' }];
    return problem('org_out_of_scope', {
      detail: 'The organisation is not allowed keys that manage keys, so none is minted for it.',
      errors,
    });
  }
  const isMissing = (scope: string): boolean => !held.includes(scope) || !targetAllows.has(scope);
  const missing = fields(scopes, isMissing, 'scope_not_held', 'you do not hold it in that organisation');
  return missing.length > 0 ? problem('scope_not_held', { errors: missing }) : null;
}

/** A new token for rights that the caller does not hold would be a way to come by them. */
export function refuseRotation(rights: readonly string[], held: readonly string[]): Problem | null {
  const errors = rights
    .filter((scope) => !held.includes(scope))
    .map((scope) => ({ pointer: '', code: 'scope_not_held', detail: `${scope}: the key holds it and you do not` }));
  return errors.length > 0 ? problem('scope_not_held', { errors }) : null;
}
