import { element, xmlDocument } from './xml';

/** An S3 error, which becomes the answer to the call. */
export class S3Refusal extends Error {
  readonly status: number;
  readonly code: string;

  constructor(status: number, code: string, message: string) {
    super(message);
    this.name = 'S3Refusal';
    this.status = status;
    this.code = code;
  }
}

const statuses = {
  AccessDenied: 403,
  SignatureDoesNotMatch: 403,
  InvalidAccessKeyId: 403,
  RequestTimeTooSkewed: 403,
  NoSuchBucket: 404,
  NoSuchKey: 404,
  NoSuchVersion: 404,
  NoSuchUpload: 404,
  ObjectLockConfigurationNotFoundError: 404,
  NoSuchObjectLockConfiguration: 404,
  MethodNotAllowed: 405,
  BucketAlreadyOwnedByYou: 409,
  BucketNotEmpty: 409,
  InvalidBucketState: 409,
  PreconditionFailed: 412,
  InvalidRange: 416,
  MissingContentLength: 411,
  NotImplemented: 501,
} as const;

type RefusalCode =
  | keyof typeof statuses
  | 'BadDigest'
  | 'EntityTooLarge'
  | 'EntityTooSmall'
  | 'IncompleteBody'
  | 'InvalidArgument'
  | 'InvalidBucketName'
  | 'InvalidPart'
  | 'InvalidPartOrder'
  | 'InvalidRequest'
  | 'KeyTooLongError'
  | 'MalformedXML'
  | 'XAmzContentSHA256Mismatch';

const isListed = (code: string): code is keyof typeof statuses => Object.hasOwn(statuses, code);

export function refuse(code: RefusalCode, message: string): never {
  throw new S3Refusal(isListed(code) ? statuses[code] : 400, code, message);
}

export const errorDocument = (code: string, message: string, resource: string, requestId: string): string =>
  xmlDocument(
    element('Error', [
      element('Code', code),
      element('Message', message),
      element('Resource', resource),
      element('RequestId', requestId),
    ]),
  );
