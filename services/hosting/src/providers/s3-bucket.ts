import { createHash } from 'node:crypto';
import { addAbortSignal, Readable } from 'node:stream';
import {
  type DeleteMarkerEntry,
  DeleteObjectsCommand,
  GetObjectLockConfigurationCommand,
  GetObjectRetentionCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
  PutObjectRetentionCommand,
  S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { ArchiveError, formatBounds, manifestName } from '@drydock/archive';
import { withoutDetails } from '@drydock/service/telemetry';
import { forEachAtOnce } from './for-each-at-once';

const missingNames: readonly string[] = ['NoSuchKey', 'NoSuchVersion', 'NotFound'];

export const isMissingObject = (error: unknown): boolean =>
  error instanceof S3ServiceException && missingNames.includes(error.name);

/** Whether the storage does not support the call. */
const isUnknownCall = (error: unknown): boolean =>
  error instanceof S3ServiceException && error.$metadata.httpStatusCode === 501;

/**
 * Whether a storage may give this error when a lock prevents a delete. AWS and Ceph answer AccessDenied, MinIO answers
 * InvalidRequest.
 */
export const isLockRefusal = (name: string | undefined): boolean =>
  name !== undefined && ['AccessDenied', 'InvalidRequest', 'ObjectLocked'].includes(name);

/** Drydock's own bucket, the folder in it, and the key to it. */
export interface S3Place {
  /** `http(s)://host[:port]`. Undefined stands for Amazon's endpoint of the region. */
  endpoint: string | undefined;
  region: string;
  bucket: string;
  /** Folders without a slash at either end; '' is the whole bucket. */
  prefix: string;
  accessKeyId: string;
  secretAccessKey: string;
}

/** An attempt fails after this time without a byte. A healthy storage answers within seconds. */
const idleMs = 30_000;
/** The most connections to the storage. Further calls wait for a free connection. */
const socketsMax = 32;

export function openS3Client({ endpoint, region, accessKeyId, secretAccessKey }: S3Place): S3Client {
  const client = new S3Client({
    ...(endpoint === undefined ? {} : { endpoint, forcePathStyle: true }),
    region,
    credentials: { accessKeyId, secretAccessKey },
    maxAttempts: 4,
    // The HMACs of the archives cover every byte that is read, so the client need not check checksums.
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

/** Makes no spans of the client's requests, because their number grows with the size of an archive. */
export function leaveRequestsOutOfTraces(client: S3Client): void {
  client.middlewareStack.add((next) => (request) => withoutDetails(() => next(request)), {
    step: 'initialize',
    name: 'leaveRequestsOutOfTraces',
  });
}

/** The key of the object at `path` below the prefix. */
export const keyAt = ({ prefix }: S3Place, path: string): string => (prefix === '' ? path : `${prefix}/${path}`);

/** A version of an object, or the object itself in a bucket without versions. */
export interface ObjectVersion {
  key: string;
  versionId: string | undefined;
  isLatest: boolean;
  isDeleteMarker: boolean;
}

const pageKeys = 1000;

/**
 * Lists every version and delete marker below `prefix`. For each key the versions come newest first, and so do the
 * delete markers. How the two are mixed is undefined.
 */
export async function* listVersions(client: S3Client, bucket: string, prefix: string): AsyncGenerator<ObjectVersion> {
  try {
    yield* listAllVersions(client, bucket, prefix);
  } catch (error) {
    if (!isUnknownCall(error)) throw error;
    yield* listObjects(client, bucket, prefix);
  }
}

async function* listAllVersions(client: S3Client, Bucket: string, Prefix: string): AsyncGenerator<ObjectVersion> {
  let marker: { KeyMarker?: string; VersionIdMarker?: string } | null = {};
  while (marker !== null) {
    const page: Awaited<ReturnType<typeof readPage>> = await readPage(client, { Bucket, Prefix, ...marker });
    for (const version of page.Versions ?? []) yield toVersion(version, false);
    for (const version of page.DeleteMarkers ?? []) yield toVersion(version, true);
    const { NextKeyMarker: key, NextVersionIdMarker: id } = page;
    const next = {
      ...(key === undefined ? {} : { KeyMarker: key }),
      ...(id === undefined ? {} : { VersionIdMarker: id }),
    };
    marker = page.IsTruncated === true && key !== undefined ? next : null;
  }
}

const readPage = (client: S3Client, input: ConstructorParameters<typeof ListObjectVersionsCommand>[0]) =>
  client.send(new ListObjectVersionsCommand(input));

const toVersion = ({ Key, VersionId, IsLatest }: DeleteMarkerEntry, isDeleteMarker: boolean): ObjectVersion => ({
  key: Key ?? '',
  versionId: VersionId,
  isLatest: IsLatest === true,
  isDeleteMarker,
});

async function* listObjects(client: S3Client, Bucket: string, Prefix: string): AsyncGenerator<ObjectVersion> {
  for (let token: string | undefined, isFirst = true; isFirst || token !== undefined; isFirst = false) {
    const page = await client.send(
      new ListObjectsV2Command({ Bucket, Prefix, ...(token === undefined ? {} : { ContinuationToken: token }) }),
    );
    for (const { Key } of page.Contents ?? [])
      yield { key: Key ?? '', versionId: undefined, isLatest: true, isDeleteMarker: false };
    token = page.IsTruncated === true ? page.NextContinuationToken : undefined;
  }
}

/**
 * Deletes versions, as many at a time as S3 allows. Resolves with the number of versions that a lock has kept. Rejects
 * if a version could not be deleted for another reason.
 */
export async function deleteVersions(
  client: S3Client,
  bucket: string,
  versions: readonly ObjectVersion[],
): Promise<number> {
  let locked = 0;
  for (let at = 0; at < versions.length; at += pageKeys) {
    const Objects = versions
      .slice(at, at + pageKeys)
      .map(({ key, versionId }) => ({ Key: key, ...(versionId === undefined ? {} : { VersionId: versionId }) }));
    const { Errors = [] } = await client.send(
      new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects, Quiet: true } }),
    );
    const failed = Errors.find(({ Code }) => !isLockRefusal(Code));
    if (failed !== undefined) throw new Error(`an object could not be deleted: ${failed.Code}`);
    locked += Errors.length;
  }
  return locked;
}

const locksAtOnce = 8;

/** Whether the bucket has Object Lock. Rejects if the storage does not answer. */
export async function hasObjectLock(client: S3Client, Bucket: string): Promise<boolean> {
  try {
    const { ObjectLockConfiguration } = await client.send(new GetObjectLockConfigurationCommand({ Bucket }));
    return ObjectLockConfiguration?.ObjectLockEnabled === 'Enabled';
  } catch (error) {
    if (
      isUnknownCall(error) ||
      (error instanceof S3ServiceException && error.name === 'ObjectLockConfigurationNotFoundError')
    )
      return false;
    throw error;
  }
}

/**
 * Locks each version until `until` in mode COMPLIANCE, which not even the owner of the account can lift. Then reads
 * every lock back.
 */
export async function lockVersions(
  client: S3Client,
  Bucket: string,
  versions: readonly ObjectVersion[],
  until: Date,
): Promise<void> {
  await forEachAtOnce(locksAtOnce, versions, async ({ key: Key, versionId: VersionId }) => {
    const version = { Bucket, Key, VersionId };
    await client.send(
      new PutObjectRetentionCommand({ ...version, Retention: { Mode: 'COMPLIANCE', RetainUntilDate: until } }),
    );
    const { Retention } = await client.send(new GetObjectRetentionCommand(version));
    // Storages keep whole seconds, so the reported end may be up to a second early.
    const isKept =
      Retention?.Mode === 'COMPLIANCE' && (Retention.RetainUntilDate?.getTime() ?? 0) >= until.getTime() - 1_000;
    if (!isKept) throw new Error(`the storage says of ${Key} that it is not locked`);
  });
}

export interface BodyLimits {
  bytesMax: number;
  signal: AbortSignal;
}

/**
 * The limit for a sealed object is a sixteenth larger than its content, because sealing adds bytes, and compression
 * makes some content larger.
 */
const sealed = (rawBytes: number): number => rawBytes + rawBytes / 16;

/** The most bytes that an archive's object with this name can have. Drydock writes no larger objects. */
export function objectBytesMax(name: string): number {
  if (name === manifestName) return sealed(formatBounds.manifestBytes);
  return sealed(name.startsWith('segment-') ? formatBounds.segmentRawBytes : formatBounds.blockIndexRawBytes);
}

const tooLarge = (): never => {
  throw new ArchiveError('tampered', 'an object larger than any of its kind');
};

/** Reads the whole body into memory. Rejects if it ends early or is too large, or if `signal` is aborted. */
export async function readObjectBody(
  body: unknown,
  declaredBytes: number | undefined,
  { bytesMax, signal }: BodyLimits,
): Promise<Buffer> {
  if (declaredBytes !== undefined && declaredBytes > bytesMax) tooLarge();
  const bytes = declaredBytes === undefined ? null : Buffer.allocUnsafeSlow(declaredBytes);
  const chunks: Buffer[] = [];
  const filled = await hear(body, { bytesMax: declaredBytes ?? bytesMax, signal }, (chunk, at) => {
    // A body of known length fills a single buffer, because only a whole buffer can be moved to a thread.
    if (bytes === null) chunks.push(chunk);
    else chunk.copy(bytes, at);
  });
  if (bytes === null) return Buffer.concat(chunks);
  if (filled < bytes.length) throw new Error(`the body ended after ${filled} of ${bytes.length} bytes`);
  return bytes;
}

/**
 * The SHA-256 of a body, in hex, without keeping the body in memory. Rejects if it is too large, or if `signal` is
 * aborted.
 */
export async function digestObjectBody(body: unknown, limits: BodyLimits): Promise<string> {
  const hash = createHash('sha256');
  await hear(body, limits, (chunk) => hash.update(chunk));
  return hash.digest('hex');
}

/** Calls `onChunk` for each piece with its offset. Resolves with the number of bytes. */
async function hear(
  body: unknown,
  { bytesMax, signal }: BodyLimits,
  onChunk: (chunk: Buffer, at: number) => void,
): Promise<number> {
  if (!(body instanceof Readable)) throw new Error('an answer without a body');
  const stream = addAbortSignal(signal, body);
  let bytes = 0;
  try {
    for await (const chunk of stream as AsyncIterable<Buffer>) {
      if (bytes + chunk.length > bytesMax) tooLarge();
      onChunk(chunk, bytes);
      bytes += chunk.length;
    }
    return bytes;
  } finally {
    stream.destroy();
  }
}
