import { isPermission, type Permission, permissions } from '@drydock/contracts/platform/permissions';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { ProblemField } from '@drydock/contracts/platform/problems';
import type { Mode } from '@drydock/contracts/platform/values';

/** A key without its secret. The hash of the secret is read only where a token is verified. */
export interface ApiKeyRecord {
  id: string;
  orgId: string;
  name: string;
  prefix: string;
  /** The scopes that were given to the key. {@link effectiveScopes} tells which of these scopes are effective now. */
  scopes: string[];
  mode: Mode;
  createdAt: Date;
  lastUsedAt: Date | null;
  /** The end of the grace time after a rotation. Null if the key was not rotated. */
  validUntil: Date | null;
  createdBy: string | null;
  expiresAt: Date | null;
  /** The addresses from which the key can be used. An empty list allows every address. */
  allowedIps: string[];
  revokedAt: Date | null;
}

/**
 * The facts from which a key's present rights follow. `allowedByEach` has the permissions of each organisation from the
 * root down to the key's organisation.
 */
export interface KeyRights {
  scopes: string[];
  allowedByEach: string[][];
}

/**
 * The limits of a key besides its scopes. A minted key inherits the limits of the key that mints it. {@link
 * limitsOfRotation} gives the limits after a rotation.
 */
export type KeyLimits = Pick<ApiKeyRecord, 'expiresAt' | 'allowedIps'>;

/**
 * The keys that a caller may manage: those of its organisation and of the organisations below it. A sandbox key manages
 * only sandbox keys.
 */
export interface KeyScope {
  orgId: string;
  mode: Mode;
}

/** A key's scopes that every organisation allows, from the root down to the key's organisation. */
export const effectiveScopes = ({ scopes, allowedByEach }: KeyRights): Permission[] =>
  scopes.filter(isPermission).filter((scope) => allowedByEach.every((allowed) => allowed.includes(scope)));

/** The permissions among `scopes`, each once, in the order of `permissions`. */
export const normaliseScopes = (scopes: readonly string[]): Permission[] =>
  permissions.filter((permission) => scopes.includes(permission));

const fields = (
  scopes: readonly string[],
  isRefused: (scope: string) => boolean,
  code: string,
  detail: string,
): ProblemField[] =>
  scopes.flatMap((scope, index) =>
    isRefused(scope) ? [{ pointer: `/scopes/${index}`, code, detail: `${scope}: ${detail}` }] : [],
  );

export interface MintRequest {
  callerMode: Mode;
  /** The rights of the calling key at this moment. */
  held: readonly string[];
  /**
   * The permissions that the target organisation shares with all organisations above it. Null if the target does not
   * exist or the caller may not reach it.
   */
  targetAllows: ReadonlySet<string> | null;
  scopes: readonly string[];
  sandbox: boolean;
}

/**
 * The reason why this key may not be minted, or null. A new key gets no right that its creator or its organisation
 * lacks.
 */
export function refuseMint({ callerMode, held, targetAllows, scopes, sandbox }: MintRequest): Problem | null {
  const unknown = fields(scopes, (scope) => !isPermission(scope), 'unknown_scope', 'there is no such permission');
  if (unknown.length > 0) return problem('unknown_scope', { errors: unknown });
  if (callerMode === 'sandbox' && !sandbox) return problem('sandbox_key');
  if (targetAllows === null) return problem('org_out_of_scope');
  if (!targetAllows.has('apikeys.manage')) {
    const errors = [{ pointer: '/org_id', code: 'permission_missing', detail: 'apikeys.manage' }];
    return problem('org_out_of_scope', {
      detail: 'This organisation may not have keys that manage keys.',
      errors,
    });
  }
  const isMissing = (scope: string): boolean => !held.includes(scope) || !targetAllows.has(scope);
  const missing = fields(scopes, isMissing, 'scope_not_held', 'you do not hold it in that organisation');
  return missing.length > 0 ? problem('scope_not_held', { errors: missing }) : null;
}

/**
 * Refuses a rotation if the caller lacks a right of the key, because the new token would give the caller that right.
 * {@link refuseRevocation} uses the same rule, so that a weak key cannot revoke a strong key.
 */
export function refuseRotation(rights: readonly string[], held: readonly string[]): Problem | null {
  const errors = rights
    .filter((scope) => !held.includes(scope))
    .map((scope) => ({ pointer: '', code: 'scope_not_held', detail: `${scope}: the key holds it and you do not` }));
  return errors.length > 0 ? problem('scope_not_held', { errors }) : null;
}

/**
 * A key may be revoked by itself, by the key that minted it, by staff, and by a key that holds all of its present
 * rights.
 */
export function refuseRevocation(
  key: KeyRights & Pick<ApiKeyRecord, 'id' | 'createdBy'>,
  caller: { keyId: string; scopes: readonly string[] },
): Problem | null {
  if (caller.keyId === key.id || caller.keyId === key.createdBy || caller.scopes.includes('platform.staff'))
    return null;
  return refuseRotation(effectiveScopes(key), caller.scopes);
}

const earlierEnd = (...ends: (Date | null)[]): Date | null =>
  ends.filter((end) => end !== null).sort((one, other) => one.getTime() - other.getTime())[0] ?? null;

/** The time from which the key is unusable: the earlier of its own end and the end of its grace time. Null if none. */
export const endOf = ({ expiresAt, validUntil }: Pick<ApiKeyRecord, 'expiresAt' | 'validUntil'>): Date | null =>
  earlierEnd(expiresAt, validUntil);

/**
 * The limits of the new key of a rotation. The new key ends when the old key or the calling key ends, whichever is
 * earlier. The new key has the addresses of the old key. If the old key allows every address, the new key has the
 * addresses of the calling key.
 */
export const limitsOfRotation = (old: KeyLimits, caller: KeyLimits): KeyLimits => ({
  expiresAt: earlierEnd(old.expiresAt, caller.expiresAt),
  allowedIps: old.allowedIps.length > 0 ? old.allowedIps : caller.allowedIps,
});

export interface KeyChange {
  scopes?: readonly string[] | undefined;
  expiresAt?: Date | null | undefined;
  allowedIps?: readonly string[] | undefined;
}

/** Whether a change gives a key a longer life or more addresses. */
export function isLifted(old: KeyLimits, { expiresAt, allowedIps }: KeyChange): boolean {
  const hasMoreTime =
    expiresAt !== undefined && old.expiresAt !== null && (expiresAt === null || expiresAt > old.expiresAt);
  const isWider =
    allowedIps !== undefined &&
    old.allowedIps.length > 0 &&
    (allowedIps.length === 0 || allowedIps.some((address) => !old.allowedIps.includes(address)));
  return hasMoreTime || isWider;
}

export interface ChangeWorld {
  old: KeyRights & KeyLimits;
  isCaller: boolean;
  /** The rights of the calling key at this moment. */
  held: readonly string[];
  callerLimits: KeyLimits;
}

/**
 * The reason why a key may not be changed, or null. A change adds no scope to a key. A key cannot lift its own limits,
 * and a key with limits cannot lift the limits of another key. A key without limits must hold all rights of the key
 * whose limits it lifts.
 */
export function refuseChange({ old, isCaller, held, callerLimits }: ChangeWorld, change: KeyChange): Problem | null {
  const scopes = change.scopes ?? [];
  const widened = fields(scopes, (scope) => !old.scopes.includes(scope), 'scope_widened', 'the key does not have it');
  if (widened.length > 0) return problem('scope_widened', { errors: widened });
  if (!isLifted(old, change)) return null;
  const isBound = callerLimits.expiresAt !== null || callerLimits.allowedIps.length > 0;
  if (isCaller || isBound) return problem('own_limits');
  return refuseRotation(effectiveScopes(old), held);
}
