import { S3ServiceException } from '@aws-sdk/client-s3';

const missingNames: readonly string[] = ['NoSuchKey', 'NoSuchVersion', 'NotFound'];

export const isMissingObject = (error: unknown): boolean =>
  error instanceof S3ServiceException && missingNames.includes(error.name);

/** The storage does not know the call. */
export const isUnknownCall = (error: unknown): boolean =>
  error instanceof S3ServiceException && error.$metadata.httpStatusCode === 501;

/** The errors for a version under a lock: AWS and Ceph deny access, MinIO calls the request invalid. */
export const isLockRefusal = (name: string | undefined): boolean =>
  name !== undefined && ['AccessDenied', 'InvalidRequest', 'ObjectLocked'].includes(name);
