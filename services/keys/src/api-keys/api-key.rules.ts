import { isPermission, type Permission } from '@drydock/contracts/permissions';
import { type Problem, problem } from '@drydock/contracts/problem';
import type { ProblemField } from '@drydock/contracts/problems';
import type { Mode } from '@drydock/contracts/values';

export interface MintRequest {
  callerMode: Mode;
  /** Already intersected with what the caller's organisation is allowed. */
  callerScopes: readonly string[];
  /** What the target organisation and each above it is allowed; null when it is not within the caller's reach, or not there. */
  targetAllows: ReadonlySet<string> | null;
  scopes: readonly string[];
  sandbox: boolean;
}

const fields = (scopes: readonly string[], refused: (scope: string) => boolean, code: string, detail: string): ProblemField[] =>
  scopes.flatMap((scope, index) => (refused(scope) ? [{ pointer: `/scopes/${index}`, code, detail: `${scope}: ${detail}` }] : []));

/** Why this key may not be minted, or null. A key never holds more than its creator does in the organisation that it is for. */
export function refuseMint({ callerMode, callerScopes, targetAllows, scopes, sandbox }: MintRequest): Problem | null {
  if (targetAllows === null) return problem('org_out_of_scope');
  if (callerMode === 'sandbox' && !sandbox) return problem('sandbox_key');
  const unknown = fields(scopes, (scope) => !isPermission(scope), 'unknown_scope', 'there is no such permission');
  if (unknown.length > 0) return problem('unknown_scope', { errors: unknown });
  const missing = fields(
    scopes,
    (scope) => !callerScopes.includes(scope) || !targetAllows.has(scope),
    'scope_not_held',
    'you do not hold it in that organisation',
  );
  return missing.length > 0 ? problem('scope_not_held', { errors: missing }) : null;
}

/** In the order of the registry and once each, however they were asked for. */
export const normaliseScopes = (scopes: readonly string[]): Permission[] => [...new Set(scopes)].filter(isPermission).sort();

/** What is left of `scopes` once every organisation from the root down has had its say. */
export const effectiveScopes = (scopes: readonly string[], allowedByEach: readonly (readonly string[])[]): Permission[] =>
  scopes.filter(isPermission).filter((scope) => allowedByEach.every((allowed) => allowed.includes(scope)));

/** A new token for rights that the caller does not hold would be a way to come by them. */
export function refuseRotation(keyScopes: readonly string[], callerScopes: readonly string[]): Problem | null {
  const errors = keyScopes.flatMap((scope) =>
    callerScopes.includes(scope) ? [] : [{ pointer: '', code: 'scope_not_held', detail: `${scope}: the key holds it and you do not` }],
  );
  return errors.length > 0 ? problem('scope_not_held', { errors }) : null;
}
