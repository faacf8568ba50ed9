import { S3Client, S3ServiceException } from '@aws-sdk/client-s3';
import { withoutDetails } from '@drydock/service/telemetry';

const missingNames: readonly string[] = ['NoSuchKey', 'NoSuchVersion', 'NotFound'];

export const isMissingObject = (error: unknown): boolean =>
  error instanceof S3ServiceException && missingNames.includes(error.name);

/** The storage does not know the call. */
export const isUnknownCall = (error: unknown): boolean =>
  error instanceof S3ServiceException && error.$metadata.httpStatusCode === 501;

/** The errors for a version under a lock: AWS and Ceph deny access, MinIO calls the request invalid. */
export const isLockRefusal = (name: string | undefined): boolean =>
  name !== undefined && ['AccessDenied', 'InvalidRequest', 'ObjectLocked'].includes(name);

/** Drydock's own bucket, and the folder within it. */
export interface S3Place {
  /** `http(s)://host[:port]`; undefined: Amazon's of the region. */
  endpoint: string | undefined;
  region: string;
  bucket: string;
  /** Folders without a slash at either end; '' is the whole bucket. */
  prefix: string;
  accessKeyId: string;
  secretAccessKey: string;
}

/** An attempt fails after this time without a byte. A storage that works answers within seconds. */
const idleMs = 30_000;
/** The limit is twice the number of objects that are moved at once. */
const socketsMax = 32;

export function openS3Client({ endpoint, region, accessKeyId, secretAccessKey }: S3Place): S3Client {
  const client = new S3Client({
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    region,
    credentials: { accessKeyId, secretAccessKey },
    maxAttempts: 4,
    // The archives' own HMACs cover every byte that is read.
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      connectionTimeout: 5_000,
      socketTimeout: idleMs,
      httpAgent: { keepAlive: true, maxSockets: socketsMax },
      httpsAgent: { keepAlive: true, maxSockets: socketsMax },
    },
  });
  leaveRequestsOutOfTraces(client);
  return client;
}

/** Leaves the client's requests out of traces: an archive takes as many requests as it is large. */
export function leaveRequestsOutOfTraces(client: S3Client): void {
  client.middlewareStack.add((next) => (request) => withoutDetails(() => next(request)), {
    step: 'initialize',
    name: 'leaveRequestsOutOfTraces',
  });
}

/** The key of what lies at `path` below the prefix. */
export const keyAt = ({ prefix }: S3Place, path: string): string => (prefix === '' ? path : `${prefix}/${path}`);
