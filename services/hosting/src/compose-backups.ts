import type { Lifetime } from '@drydock/service/process/shutdown';
import type { ServerConfig, WorkerConfig } from './config';
import type { BackupReader, BackupStorage } from './providers/backup-storage';
import { storageByMode } from './providers/backup-storage.by-mode';
import { localBackupStorage } from './providers/backup-storage.local';
import { movedReader, movedStorage } from './providers/backup-storage.moved';
import { s3BackupReader, s3BackupStorage } from './providers/backup-storage.s3';
import type { S3Place } from './providers/s3-place';

/**
 * Live backups go to object storage if it is configured. Backups of the sandbox, and those from the time before object
 * storage, are in the folder.
 */
export function openBackupStorage(config: WorkerConfig, lifetime: Lifetime): BackupStorage {
  const { BACKUPS_S3_ACCESS_KEY_ID: id, BACKUPS_S3_SECRET_ACCESS_KEY: secret } = config;
  const local = localBackupStorage(config.BACKUPS_DIR);
  const place = placeOf(config, { id, secret, names: 'BACKUPS_S3_ACCESS_KEY_ID and BACKUPS_S3_SECRET_ACCESS_KEY' });
  if (place === null) return local;
  const s3 = s3BackupStorage(place);
  lifetime.onClose('object storage', async () => s3.close());
  return storageByMode({ live: movedStorage(s3, local), sandbox: local });
}

/** The same places, for a process that only checks whether a backup is there. */
export function openBackupReader(config: ServerConfig, lifetime: Lifetime): BackupReader {
  const { BACKUPS_S3_READER_ACCESS_KEY_ID: id, BACKUPS_S3_READER_SECRET_ACCESS_KEY: secret } = config;
  const local = localBackupStorage(config.BACKUPS_DIR);
  const names =
    'BACKUPS_S3_READER_ACCESS_KEY_ID and BACKUPS_S3_READER_SECRET_ACCESS_KEY (a key that may only list the bucket)';
  const place = placeOf(config, { id, secret, names });
  if (place === null) return local;
  const s3 = s3BackupReader(place);
  lifetime.onClose('object storage', async () => s3.close());
  const live = movedReader(s3, local);
  return {
    locationIn: (mode) => (mode === 'sandbox' ? local : live).locationIn(mode),
    placeIn: (mode) => (mode === 'sandbox' ? local : live).placeIn(mode),
    has: (key) => (key.startsWith('sandbox/') ? local : live).has(key),
  };
}

type BucketConfig = Pick<
  ServerConfig,
  'BACKUPS_S3_ENDPOINT' | 'BACKUPS_S3_REGION' | 'BACKUPS_S3_BUCKET' | 'BACKUPS_S3_PREFIX'
>;

interface Credential {
  id: string | undefined;
  secret: string | undefined;
  /** The names of the environment variables, for an error message. */
  names: string;
}

/** @throws Error when only a part of it is configured: backups must not end up in another place than was meant */
function placeOf(config: BucketConfig, { id, secret, names }: Credential): S3Place | null {
  const {
    BACKUPS_S3_ENDPOINT: endpoint,
    BACKUPS_S3_REGION: region,
    BACKUPS_S3_PREFIX: prefix,
    BACKUPS_S3_BUCKET: bucket,
  } = config;
  if (bucket !== undefined && id !== undefined && secret !== undefined)
    return { endpoint, region, bucket, prefix, accessKeyId: id, secretAccessKey: secret };
  if ([bucket, id, secret, endpoint].every((value) => value === undefined)) return null;
  throw new Error(`BACKUPS_S3_BUCKET, ${names} are needed together`);
}
