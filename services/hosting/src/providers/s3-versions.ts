import {
  type DeleteMarkerEntry,
  DeleteObjectsCommand,
  GetObjectLockConfigurationCommand,
  GetObjectRetentionCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
  PutObjectRetentionCommand,
  type S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { forEachAtOnce } from './for-each-at-once';
import { isLockRefusal, isUnknownCall } from './s3-place';

/** A version of an object; in a bucket without versions, the object itself. */
export interface ObjectVersion {
  key: string;
  versionId: string | undefined;
  isLatest: boolean;
  isDeleteMarker: boolean;
}

const pageKeys = 1000;

/** Every version and delete marker below `prefix`, newest first for each key. */
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
 * Deletes versions, as many in one call as S3 allows. Resolves with the number that a lock has kept. Rejects if one
 * could not be deleted for another reason.
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

/** Whether locks exist in the bucket. Rejects when that cannot be known. */
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
 * Locks each version with COMPLIANCE until then, which not even the account's owner may take back, and reads every lock
 * back.
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
    // Storages keep whole seconds.
    const isKept =
      Retention?.Mode === 'COMPLIANCE' && (Retention.RetainUntilDate?.getTime() ?? 0) >= until.getTime() - 1_000;
    if (!isKept) throw new Error(`the storage says of ${Key} that it is not locked`);
  });
}
