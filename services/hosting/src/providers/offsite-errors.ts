import { S3ServiceException } from '@aws-sdk/client-s3';
import { ArchiveError, systemErrorCode } from '@drydock/archive';
import { AddressRefused } from '@drydock/service/outbound';
import { OffsiteError, OffsiteFailure, type OffsiteRefusal } from './offsite-storage';

type Kind = OffsiteRefusal | 'missing' | 'may_pass';

/**
 * Codes that decide the kind of an error, whatever its HTTP status. This is a Map and not an object, because a storage
 * may answer any text as a code, such as `constructor`.
 */
const kindOfCode: ReadonlyMap<string, Kind> = new Map([
  ['NoSuchKey', 'missing'],
  ['NoSuchBucket', 'bucket_unusable'],
  ['InvalidBucketName', 'bucket_unusable'],
  ['PermanentRedirect', 'bucket_unusable'],
  // The request was signed for another region than the bucket's.
  ['AuthorizationHeaderMalformed', 'bucket_unusable'],
  ['IllegalLocationConstraintException', 'bucket_unusable'],
  ['QuotaExceeded', 'bucket_unusable'],
  ['InvalidObjectState', 'bucket_unusable'],
  ['ExpiredToken', 'credentials_rejected'],
  ['InvalidToken', 'credentials_rejected'],
  // The clock of the worker may be wrong, so this refusal says nothing about the key.
  ['RequestTimeTooSkewed', 'may_pass'],
  // The following codes say that the body was damaged on its way, or came too late.
  ['RequestTimeout', 'may_pass'],
  ['BadDigest', 'may_pass'],
  ['IncompleteBody', 'may_pass'],
  ['XAmzContentSHA256Mismatch', 'may_pass'],
]);

/** Statuses of the 400 range that are transient: timeout, conflict, too early, too many requests. */
const passingStatuses: readonly number[] = [408, 409, 425, 429];

function kindOf(error: S3ServiceException, isRead: boolean): Kind {
  const status = error.$metadata.httpStatusCode ?? 0;
  const byCode = kindOfCode.get(error.name);
  if (byCode !== undefined) return byCode;
  if (status === 401 || status === 403) return 'credentials_rejected';
  // For a read 404 means a missing object. A server that answers a write or a listing with 404 is no storage.
  if (status === 404 && isRead) return 'missing';
  if (passingStatuses.includes(status)) return 'may_pass';
  return (status >= 300 && status < 500) || status === 501 || status === 507 ? 'bucket_unusable' : 'may_pass';
}

export const isArchiveMissing = (error: unknown): boolean =>
  error instanceof ArchiveError && error.reason === 'missing';

/** The storage chooses the text of the code, so only a single short word is recorded. */
const wordOf = (code: string): string => (/^[A-Za-z0-9._-]{1,64}$/.test(code) ? code : 'no code');

/**
 * The codes of OpenSSL and Node for TLS that cannot be trusted: an expired certificate, one for another name, an
 * unknown authority, a missing intermediate, or no TLS at all.
 */
const tlsCodes = /^(?:ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|HOSTNAME_MISMATCH|EPROTO$)|SELF_SIGNED|_CA$/;

function translated(error: unknown, isRead: boolean, depth = 0): unknown {
  if (error instanceof AddressRefused) return new OffsiteError('endpoint_refused', error.message, { cause: error });
  if (error instanceof S3ServiceException) {
    const kind = kindOf(error, isRead);
    const what = `${wordOf(error.name)}, HTTP ${error.$metadata.httpStatusCode ?? 'without an answer'}`;
    if (kind === 'missing') return new ArchiveError('missing', `an object is missing: ${what}`);
    return kind === 'may_pass'
      ? new Error(`the storage failed: ${what}`, { cause: error })
      : new OffsiteError(kind, what);
  }
  // An untrusted certificate is permanent, because only the customer can repair it.
  const code = systemErrorCode(error);
  if (tlsCodes.test(code)) return new OffsiteError('endpoint_refused', code, { cause: error });
  const cause = error instanceof Error && depth < 3 ? translated(error.cause, isRead, depth + 1) : undefined;
  return cause instanceof OffsiteError ? cause : error;
}

/**
 * Turns refusals of the storage into {@link OffsiteError}s, and for reads a missing object into ArchiveError `missing`.
 * Every other error becomes an {@link OffsiteFailure}, except an ArchiveError, which is about the object that was read.
 */
export async function translateS3<T>(work: () => Promise<T>, { isRead = false } = {}): Promise<T> {
  try {
    return await work();
  } catch (error) {
    const told = translated(error, isRead);
    throw told instanceof OffsiteError || told instanceof ArchiveError ? told : new OffsiteFailure(told);
  }
}
