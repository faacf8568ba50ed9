import type { S3Call } from './s3-call';
import { refuse } from './s3-errors';
import { type BucketSettings, type Retention, retentionModes, type StoredVersion } from './stored-version';

/**
 * The answers of different providers to deleting a locked version. AWS and Ceph deny access, MinIO answers an invalid
 * request, and s3rver ignores the lock and deletes.
 */
export const lockAnswers = ['access_denied', 'invalid_request', 'ignored'] as const;
export type LockAnswer = (typeof lockAnswers)[number];

const dayMs = 24 * 3_600_000;
const protectedMessage = 'Access Denied because object protected by object lock.';

/**
 * Checks that a version may be destroyed. The header x-amz-bypass-governance-retention lifts GOVERNANCE, but never
 * COMPLIANCE. @throws S3Refusal
 */
export function assertMayDestroy(
  version: StoredVersion,
  call: Pick<S3Call, 'headers'>,
  answer: LockAnswer,
  nowMs: number,
): void {
  if (answer === 'ignored' || !isLocked(version, call, nowMs)) return;
  if (answer === 'access_denied') refuse('AccessDenied', protectedMessage);
  refuse('InvalidRequest', 'Object is WORM protected and cannot be overwritten');
}

function isLocked(
  { retention, isOnLegalHold }: StoredVersion,
  { headers }: Pick<S3Call, 'headers'>,
  nowMs: number,
): boolean {
  if (isOnLegalHold) return true;
  if (retention === null || Date.parse(retention.until) <= nowMs) return false;
  return retention.mode === 'COMPLIANCE' || headers['x-amz-bypass-governance-retention'] !== 'true';
}

/** Returns the retention from the headers of a PUT, or the bucket's default retention. @throws S3Refusal */
export function retentionFor({ headers }: S3Call, settings: BucketSettings, nowMs: number): Retention | null {
  const mode = headers['x-amz-object-lock-mode'];
  const until = headers['x-amz-object-lock-retain-until-date'];
  if (mode === undefined && until === undefined) {
    const { defaultRetention: rule } = settings;
    return rule === null ? null : { mode: rule.mode, until: new Date(nowMs + rule.days * dayMs).toISOString() };
  }
  assertHasLock(settings);
  return parseRetention(mode, until, nowMs);
}

export const isHeldBy = ({ headers }: S3Call, settings: BucketSettings): boolean => {
  if (headers['x-amz-object-lock-legal-hold'] !== 'ON') return false;
  assertHasLock(settings);
  return true;
};

/** Checks that the bucket has Object Lock. @throws S3Refusal */
export function assertHasLock({ hasObjectLock }: BucketSettings): void {
  if (!hasObjectLock) refuse('InvalidRequest', 'Bucket is missing Object Lock Configuration');
}

/** @throws S3Refusal if the mode is unknown, or if the date is missing or in the past */
export function parseRetention(mode: string | undefined, until: string | undefined, nowMs: number): Retention {
  const known = retentionModes.find((name) => name === mode);
  const at = Date.parse(until ?? '');
  if (known === undefined || Number.isNaN(at))
    refuse('InvalidArgument', 'A mode and a date of retention are both needed.');
  if (at <= nowMs) refuse('InvalidArgument', 'The retain until date must be in the future!');
  return { mode: known, until: new Date(at).toISOString() };
}

/**
 * Checks a change of the retention. COMPLIANCE can only be prolonged. GOVERNANCE can be weakened with the header
 * x-amz-bypass-governance-retention.
 *
 * @throws S3Refusal
 */
export function assertMayRetain(
  version: StoredVersion,
  wanted: Retention,
  call: Pick<S3Call, 'headers'>,
  nowMs: number,
): void {
  const { retention } = version;
  if (retention === null || !isLocked({ ...version, isOnLegalHold: false }, call, nowMs)) return;
  const isWeaker =
    Date.parse(wanted.until) < Date.parse(retention.until) ||
    (retention.mode === 'COMPLIANCE' && wanted.mode !== 'COMPLIANCE');
  if (isWeaker) refuse('AccessDenied', protectedMessage);
}
