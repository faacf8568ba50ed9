import { S3ServiceException } from '@aws-sdk/client-s3';
import { ArchiveError, systemErrorCode } from '@drydock/archive/format/archive-error';
import { AddressRefused } from '@drydock/service/outbound/guarded-agent';
import { OffsiteError, type OffsiteRefusal } from './offsite-storage';

type Kind = OffsiteRefusal | 'missing' | 'may_pass';

/** Codes that decide whatever their status. A map, not an object, because the code is the storage's own text. */
const kindOfCode: ReadonlyMap<string, Kind> = new Map([
  ['NoSuchKey', 'missing'],
  ['NoSuchBucket', 'bucket_unusable'],
  ['InvalidBucketName', 'bucket_unusable'],
  ['PermanentRedirect', 'bucket_unusable'],
  // Signed for another region than the bucket's.
  ['AuthorizationHeaderMalformed', 'bucket_unusable'],
  ['IllegalLocationConstraintException', 'bucket_unusable'],
  ['QuotaExceeded', 'bucket_unusable'],
  ['InvalidObjectState', 'bucket_unusable'],
  ['ExpiredToken', 'credentials_rejected'],
  ['InvalidToken', 'credentials_rejected'],
  // Our clock, not their key.
  ['RequestTimeTooSkewed', 'may_pass'],
  // The body was damaged on its way, or came too late: the same request may succeed.
  ['RequestTimeout', 'may_pass'],
  ['BadDigest', 'may_pass'],
  ['IncompleteBody', 'may_pass'],
  ['XAmzContentSHA256Mismatch', 'may_pass'],
]);

/** Timeout, conflict, too early, too many: of all that the client is told to be its fault, these pass. */
const passingStatuses: readonly number[] = [408, 409, 425, 429];

function kindOf(error: S3ServiceException, isRead: boolean): Kind {
  const status = error.$metadata.httpStatusCode ?? 0;
  const byCode = kindOfCode.get(error.name);
  if (byCode !== undefined) return byCode;
  if (status === 401 || status === 403) return 'credentials_rejected';
  // A server that answers 404 to a write or a listing is no storage.
  if (status === 404 && isRead) return 'missing';
  if (passingStatuses.includes(status)) return 'may_pass';
  return (status >= 300 && status < 500) || status === 501 || status === 507 ? 'bucket_unusable' : 'may_pass';
}

/** Whether an error says that an object is not there. */
export const asMissingObject = (error: unknown): boolean => error instanceof ArchiveError && error.reason === 'missing';

/** The code is text of somebody else's: nothing but a word of it goes on record. */
const wordOf = (code: string): string => (/^[A-Za-z0-9._-]{1,64}$/.test(code) ? code : 'no code');

/** As OpenSSL and Node name them: expired, of another name, of an authority that nobody knows, without the certificate between, or no TLS at all. */
const tlsCodes = /^(?:ERR_TLS_|ERR_SSL_|CERT_|UNABLE_TO_|HOSTNAME_MISMATCH|EPROTO$)|SELF_SIGNED|_CA$/;

function translated(error: unknown, isRead: boolean, depth = 0): unknown {
  if (error instanceof AddressRefused) return new OffsiteError('endpoint_refused', error.message, { cause: error });
  if (error instanceof S3ServiceException) {
    const kind = kindOf(error, isRead);
    const what = `${wordOf(error.name)}, HTTP ${error.$metadata.httpStatusCode ?? 'without an answer'}`;
    if (kind === 'missing') return new ArchiveError('missing', `an object is missing: ${what}`);
    return kind === 'may_pass' ? new Error(`the storage failed: ${what}`, { cause: error }) : new OffsiteError(kind, what);
  }
  // TLS that cannot be trusted stays so; a certificate is the customer's to mend.
  const code = systemErrorCode(error);
  if (tlsCodes.test(code)) return new OffsiteError('endpoint_refused', code, { cause: error });
  const cause = error instanceof Error && depth < 3 ? translated(error.cause, isRead, depth + 1) : undefined;
  return cause instanceof OffsiteError ? cause : error;
}

/** The same work, with the storage's refusals as {@link OffsiteError}s and, of a read, missing objects as ArchiveError `missing`. */
export async function translateS3<T>(work: () => Promise<T>, { isRead = false } = {}): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw translated(error, isRead);
  }
}
