import {
  AbortMultipartUploadCommand,
  DeleteObjectCommand,
  GetObjectCommand,
  GetObjectRetentionCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  PutObjectCommand,
  type S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { isObjectName, manifestName, refuse } from '@drydock/archive';
import { timeLimit } from '@drydock/process';
import {
  assertStorageKey,
  type BackupReader,
  type BackupStorage,
  type Canary,
  CanaryError,
  type CanaryStorage,
  type DeleteAnswer,
} from './backup-storage';
import { forEachAtOnce } from './for-each-at-once';
import { readAhead } from './read-ahead';
import {
  deleteVersions,
  hasObjectLock,
  isLockRefusal,
  isMissingObject,
  keyAt,
  listVersions,
  lockVersions,
  type ObjectVersion,
  objectBytesMax,
  openS3Client,
  readObjectBody,
  type S3Place,
} from './s3-bucket';

const abortsAtOnce = 4;

/**
 * Aborts unfinished multipart uploads below `prefix`. A worker that is killed during an upload leaves one, and its
 * parts cost money although no list of objects shows them. If the storage refuses the call or does not know it, the
 * parts stay until a lifecycle rule of the bucket removes them.
 */
async function abortUploads(
  client: S3Client,
  bucket: string,
  prefix: string,
  isKept: (key: string) => boolean,
): Promise<void> {
  try {
    for await (const page of listUploads(client, bucket, prefix)) {
      const unwanted = page.filter(({ Key }) => !isKept(Key));
      await forEachAtOnce(abortsAtOnce, unwanted, async (upload) => {
        await client.send(new AbortMultipartUploadCommand({ Bucket: bucket, ...upload })).catch(unlessStatus(404));
      });
    }
  } catch (error) {
    unlessStatus(403, 501)(error);
  }
}

interface UnfinishedUpload {
  Key: string;
  UploadId: string;
}

async function* listUploads(client: S3Client, Bucket: string, Prefix: string): AsyncGenerator<UnfinishedUpload[]> {
  let marker: { KeyMarker?: string | undefined; UploadIdMarker?: string | undefined } | null = {};
  while (marker !== null) {
    const page: Awaited<ReturnType<typeof readPage>> = await readPage(client, { Bucket, Prefix, ...marker });
    yield (page.Uploads ?? []).flatMap(({ Key, UploadId }) =>
      Key === undefined || UploadId === undefined ? [] : [{ Key, UploadId }],
    );
    const { IsTruncated, NextKeyMarker: KeyMarker, NextUploadIdMarker: UploadIdMarker } = page;
    marker = IsTruncated === true && KeyMarker !== undefined ? { KeyMarker, UploadIdMarker } : null;
  }
}

const readPage = (client: S3Client, input: ConstructorParameters<typeof ListMultipartUploadsCommand>[0]) =>
  client.send(new ListMultipartUploadsCommand(input));

const unlessStatus =
  (...statuses: number[]) =>
  (error: unknown): void => {
    const status = error instanceof S3ServiceException ? error.$metadata.httpStatusCode : undefined;
    if (status === undefined || !statuses.includes(status)) throw error;
  };

/**
 * Larger objects are uploaded in parts of this size, so that after a lost connection only one part is sent again. Most
 * segments fit into one part.
 */
const partBytes = 8 * 2 ** 20;
const partsAtOnce = 4;
/**
 * How many segments are fetched ahead of each reader. Fetching a segment takes longer than working on it. A segment
 * takes about 8 MB of memory at most.
 */
const segmentsAhead = 3;
/** The time in which one object must be read to its end. */
const objectMs = 300_000;

export interface S3BackupStorage extends BackupStorage {
  close(): void;
}

const placeName = (place: S3Place): string =>
  `${place.endpoint ?? place.region}/${keyAt({ ...place, prefix: place.bucket }, place.prefix)}`;

/** The storage for the API, whose access key may only list the bucket and its versions. */
export function s3BackupReader(place: S3Place): BackupReader & { close(): void } {
  const client = openS3Client(place);
  return {
    locationIn: () => 'object_storage',
    placeIn: () => placeName(place),
    has: async (key) => {
      assertStorageKey(key);
      const manifest = `${keyAt(place, key)}/${manifestName}`;
      for await (const found of listVersions(client, place.bucket, manifest))
        if (found.key === manifest && !found.isDeleteMarker) return true;
      return false;
    },
    close: () => client.destroy(),
  };
}

/**
 * Keeps archives as objects in Drydock's own bucket. In a bucket with Object Lock nobody can change or remove a locked
 * archive.
 */
export function s3BackupStorage(place: S3Place): S3BackupStorage {
  const client = openS3Client(place);
  const { bucket } = place;
  const folderOf = (key: string): string => {
    assertStorageKey(key);
    return keyAt(place, key);
  };
  const versionsBelow = async (folder: string): Promise<ObjectVersion[]> => {
    const versions: ObjectVersion[] = [];
    for await (const version of listVersions(client, bucket, `${folder}/`)) versions.push(version);
    return versions;
  };
  return {
    locationIn: () => 'object_storage',
    placeIn: () => placeName(place),
    sink: (key) => {
      const folder = folderOf(key);
      return { write: (name, bytes) => writeObject(client, bucket, `${folder}/${objectName(name)}`, bytes) };
    },
    source: (key) => {
      const folder = folderOf(key);
      return readAhead({ read: (name) => readObject(client, bucket, `${folder}/${objectName(name)}`) }, segmentsAhead);
    },
    has: async (key) => (await findObject(client, bucket, `${folderOf(key)}/${manifestName}`)) !== null,
    listFinished: async (prefix) => {
      const folder = folderOf(prefix);
      const manifests = (await versionsBelow(folder)).filter(
        ({ key, isDeleteMarker }) => !isDeleteMarker && key.endsWith(`/${manifestName}`),
      );
      return [...new Set(manifests.map(({ key }) => `${prefix}${key.slice(folder.length, -manifestName.length - 1)}`))];
    },
    removeAll: async (prefix, keep) => {
      const kept = keep === undefined ? null : `${folderOf(keep)}/`;
      const isKept = (key: string): boolean => kept !== null && key.startsWith(kept);
      const versions = await versionsBelow(folderOf(prefix));
      const doomed = versions.filter(({ key }) => !isKept(key));
      const lockedObjects = await deleteVersions(client, bucket, doomed);
      await abortUploads(client, bucket, `${folderOf(prefix)}/`, isKept);
      return { lockedObjects };
    },
    lock: async (key, until) => {
      const folder = folderOf(key);
      if (!(await hasObjectLock(client, bucket))) return null;
      const versions = (await versionsBelow(folder)).filter(
        ({ isLatest, isDeleteMarker }) => isLatest && !isDeleteMarker,
      );
      if (!versions.some((version) => version.key === `${folder}/${manifestName}`))
        throw new Error(`there is no archive at ${key}`);
      await lockVersions(client, bucket, versions, until);
      return until;
    },
    canary: () => s3CanaryStorage(client, place),
    close: () => client.destroy(),
  };
}

async function writeObject(client: S3Client, Bucket: string, Key: string, Body: Buffer): Promise<void> {
  const params = { Bucket, Key, Body };
  if (Body.length <= partBytes) await client.send(new PutObjectCommand(params));
  // `leavePartsOnError: false` aborts a failed upload, whose parts would cost money although nobody sees them.
  else
    await new Upload({ client, params, partSize: partBytes, queueSize: partsAtOnce, leavePartsOnError: false }).done();
}

async function readObject(client: S3Client, Bucket: string, Key: string): Promise<Buffer> {
  const found = await readVersion(client, { Bucket, Key });
  if (found !== null) return found;
  const hidden = await findHidden(client, Bucket, Key);
  return (hidden && (await readVersion(client, hidden))) ?? refuse('missing', `object ${Key} is missing`);
}

interface VersionInput {
  Bucket: string;
  Key: string;
  VersionId?: string;
}

async function readVersion(client: S3Client, version: VersionInput): Promise<Buffer | null> {
  const signal = timeLimit(objectMs);
  try {
    const { Body, ContentLength } = await client.send(new GetObjectCommand(version), { abortSignal: signal });
    const bytesMax = objectBytesMax(version.Key.slice(version.Key.lastIndexOf('/') + 1));
    return await readObjectBody(Body, ContentLength, { bytesMax, signal });
  } catch (error) {
    if (isMissingObject(error)) return null;
    throw error;
  }
}

/** The object, or the version that a delete marker hides. Null if neither exists. */
async function findObject(client: S3Client, Bucket: string, Key: string): Promise<VersionInput | null> {
  try {
    await client.send(new HeadObjectCommand({ Bucket, Key }));
    return { Bucket, Key };
  } catch (error) {
    if (!isMissingObject(error)) throw error;
    return findHidden(client, Bucket, Key);
  }
}

/**
 * Finds the newest version that a delete marker hides. A hidden backup must stay readable: a delete that names no
 * version hides even a locked object.
 */
async function findHidden(client: S3Client, Bucket: string, Key: string): Promise<VersionInput | null> {
  for await (const { key, versionId, isDeleteMarker } of listVersions(client, Bucket, Key))
    if (key === Key && !isDeleteMarker && versionId !== undefined) return { Bucket, Key, VersionId: versionId };
  return null;
}

function objectName(name: string): string {
  if (!isObjectName(name)) throw new TypeError(`not the name of an archive object: ${name}`);
  return name;
}

const credentialNames: readonly string[] = [
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'ExpiredToken',
  'InvalidToken',
];

/** Canaries lie below the prefix of the backups, so that the same rights and rules apply to them. */
function s3CanaryStorage(client: S3Client, place: S3Place): CanaryStorage {
  const { bucket: Bucket } = place;
  const inputOf = ({ key: Key, versionId: VersionId }: Canary) => ({ Bucket, Key, VersionId });
  return {
    hasLock: () => hasObjectLock(client, Bucket).catch(asCanaryError),
    write: async (name, until) => {
      const key = keyAt(place, `canary/${name}`);
      const lock = { ObjectLockMode: 'COMPLIANCE', ObjectLockRetainUntilDate: until } as const;
      const { VersionId } = await client
        .send(new PutObjectCommand({ Bucket, Key: key, Body: 'tweet', ...lock }))
        .catch(asCanaryError);
      if (VersionId === undefined) throw new CanaryError('canary_write_failed', 'the storage keeps no versions');
      return { key, versionId: VersionId };
    },
    readLock: async (canary) => {
      try {
        const { Retention } = await client.send(new GetObjectRetentionCommand(inputOf(canary)));
        const until = Retention?.RetainUntilDate;
        return Retention?.Mode === undefined || until === undefined ? null : { mode: Retention.Mode, until };
      } catch (error) {
        if (error instanceof S3ServiceException && error.name === 'NoSuchObjectLockConfiguration') return null;
        throw error;
      }
    },
    delete: (canary) =>
      client.send(new DeleteObjectCommand(inputOf(canary))).then((): DeleteAnswer => 'deleted', classify),
    exists: async (canary) => {
      try {
        await client.send(new HeadObjectCommand(inputOf(canary)));
        return true;
      } catch (error) {
        if (isMissingObject(error)) return false;
        throw error;
      }
    },
    removeUnlocked: () => removeUnlocked(client, Bucket, keyAt(place, 'canary/')),
  };
}

/**
 * Removes the versions whose lock is over. Ignores a refusal of the storage, because later steps of the check meet the
 * same refusal and report it.
 */
async function removeUnlocked(client: S3Client, Bucket: string, prefix: string): Promise<void> {
  try {
    const versions: ObjectVersion[] = [];
    for await (const version of listVersions(client, Bucket, prefix)) versions.push(version);
    await deleteVersions(client, Bucket, versions);
  } catch (error) {
    if (!(error instanceof S3ServiceException) || (error.$metadata.httpStatusCode ?? 500) >= 500) throw error;
  }
}

/**
 * Classifies the error of a delete. Throws the error if the storage did not answer. AWS answers AccessDenied for a lock
 * as well as for a missing right. The check tells the two apart by the control object, whose lock has ended.
 */
function classify(error: unknown): DeleteAnswer {
  if (!(error instanceof S3ServiceException) || (error.$metadata.httpStatusCode ?? 500) >= 500) throw error;
  const isRefusal = isLockRefusal(error.name) && [400, 403].includes(error.$metadata.httpStatusCode ?? 0);
  return isRefusal ? 'refused' : 'unclassified';
}

/** Throws a permanent error as a CanaryError, and any other error as it is. */
function asCanaryError(error: unknown): never {
  if (!(error instanceof S3ServiceException) || (error.$metadata.httpStatusCode ?? 500) >= 500) throw error;
  const reason = credentialNames.includes(error.name) ? 'credential_missing' : 'canary_write_failed';
  throw new CanaryError(reason, `${error.name}: ${error.message}`, { cause: error });
}
