import {
  GetObjectLockConfigurationCommand,
  GetObjectRetentionCommand,
  PutObjectRetentionCommand,
  type S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { forEachAtOnce } from './for-each-at-once';
import { isUnknownCall } from './s3-errors';
import type { ObjectVersion } from './s3-versions';

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
