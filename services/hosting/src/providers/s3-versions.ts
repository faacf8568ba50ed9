import {
  type DeleteMarkerEntry,
  DeleteObjectsCommand,
  ListObjectsV2Command,
  ListObjectVersionsCommand,
  type S3Client,
} from '@aws-sdk/client-s3';
import { isLockRefusal, isUnknownCall } from './s3-errors';

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
