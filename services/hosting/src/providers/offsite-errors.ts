import { S3ServiceException } from '@aws-sdk/client-s3';
import { ArchiveError, systemErrorCode } from '@drydock/archive/archive-error';
import { AddressRefused } from './guarded-agent';
import { OffsiteError, type OffsiteRefusal } from './offsite-storage';

const refusalOfName: Readonly<Record<string, OffsiteRefusal | 'missing' | 'may_pass'>> = {
  NoSuchKey: 'missing',
  NotFound: 'missing',
  NoSuchBucket: 'bucket_unusable',
  InvalidBucketName: 'bucket_unusable',
  PermanentRedirect: 'bucket_unusable',
  // Signed for another region than the bucket's.
  AuthorizationHeaderMalformed: 'bucket_unusable',
  IllegalLocationConstraintException: 'bucket_unusable',
  QuotaExceeded: 'bucket_unusable',
  InvalidObjectState: 'bucket_unusable',
  // Our clock, not their key.
  RequestTimeTooSkewed: 'may_pass',
};

function kindOf(error: S3ServiceException): OffsiteRefusal | 'missing' | 'may_pass' {
  const status = error.$metadata.httpStatusCode ?? 0;
  const byName = refusalOfName[error.name];
  if (byName !== undefined) return byName;
  if (status === 401 || status === 403) return 'credentials_rejected';
  if (status === 404) return 'missing';
  return (status >= 300 && status < 400) || status === 501 ? 'bucket_unusable' : 'may_pass';
}

/** Whether an error says that an object is not there. */
export const asMissingObject = (error: unknown): boolean => error instanceof ArchiveError && error.reason === 'truncated';

/** TLS that cannot be trusted stays so; a certificate is the customer's to mend. */
const isCertificateCode = (code: string): boolean =>
  code.startsWith('ERR_TLS_') || code.startsWith('CERT_') || code.includes('SELF_SIGNED');

function translated(error: unknown, depth = 0): unknown {
  if (error instanceof AddressRefused) return new OffsiteError('endpoint_refused', error.message, { cause: error });
  if (isCertificateCode(systemErrorCode(error))) return new OffsiteError('endpoint_refused', systemErrorCode(error), { cause: error });
  if (error instanceof S3ServiceException) {
    const kind = kindOf(error);
    const what = `${error.name}, HTTP ${error.$metadata.httpStatusCode ?? 'without an answer'}`;
    if (kind === 'missing') return new ArchiveError('truncated', `an object is missing: ${what}`);
    return kind === 'may_pass' ? new Error(`the storage failed: ${what}`, { cause: error }) : new OffsiteError(kind, what);
  }
  const cause = error instanceof Error && depth < 3 ? translated(error.cause, depth + 1) : undefined;
  return cause instanceof OffsiteError ? cause : error;
}

/** The same work, with the storage's refusals as {@link OffsiteError}s and missing objects as ArchiveError `truncated`. */
export async function translateS3<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    throw translated(error);
  }
}
