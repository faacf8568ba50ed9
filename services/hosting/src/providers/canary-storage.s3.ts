import {
  DeleteObjectCommand,
  GetObjectRetentionCommand,
  HeadObjectCommand,
  PutObjectCommand,
  type S3Client,
  S3ServiceException,
} from '@aws-sdk/client-s3';
import { type Canary, CanaryError, type CanaryStorage, type DeleteAnswer } from './backup-storage';
import { isLockRefusal, isMissingObject, keyAt, type S3Place } from './s3-place';
import { deleteVersions, hasObjectLock, listVersions, type ObjectVersion } from './s3-versions';

const credentialNames: readonly string[] = [
  'InvalidAccessKeyId',
  'SignatureDoesNotMatch',
  'ExpiredToken',
  'InvalidToken',
];

/** Canaries are written below the prefix of the backups, where the same rights and rules hold. */
export function s3CanaryStorage(client: S3Client, place: S3Place): CanaryStorage {
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

/** Errors are ignored: if the storage refuses this, the check itself meets the same refusal and reports it. */
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
 * Classifies the error of a delete. AWS answers AccessDenied for a missing right as well as for a lock, and only the
 * control object, whose lock has ended, tells them apart. A storage that did not answer rejects.
 */
function classify(error: unknown): DeleteAnswer {
  if (!(error instanceof S3ServiceException) || (error.$metadata.httpStatusCode ?? 500) >= 500) throw error;
  const isRefusal = isLockRefusal(error.name) && [400, 403].includes(error.$metadata.httpStatusCode ?? 0);
  return isRefusal ? 'refused' : 'unclassified';
}

/** A permanent error of the storage as a CanaryError; any other error is thrown as it is. */
function asCanaryError(error: unknown): never {
  if (!(error instanceof S3ServiceException) || (error.$metadata.httpStatusCode ?? 500) >= 500) throw error;
  const reason = credentialNames.includes(error.name) ? 'credential_missing' : 'canary_write_failed';
  throw new CanaryError(reason, `${error.name}: ${error.message}`, { cause: error });
}
