import type { Lifetime } from '@drydock/service-kit/shutdown';
import type { ServerConfig, WorkerConfig } from './config';
import type { BackupStorage } from './providers/backup-storage';
import { storageByMode } from './providers/backup-storage.by-mode';
import { localBackupStorage } from './providers/backup-storage.local';
import { movedStorage } from './providers/backup-storage.moved';
import { s3BackupStorage } from './providers/backup-storage.s3';
import type { S3Place } from './providers/s3-place';

/** Object storage where it is configured, for what is real; the folder for the sandbox, and for backups from before. */
export function openBackupStorage(config: ServerConfig | WorkerConfig, lifetime: Lifetime): BackupStorage {
  const local = localBackupStorage(config.BACKUPS_DIR);
  const place = placeOf(config);
  if (place === null) return local;
  const s3 = s3BackupStorage(place);
  lifetime.onClose('object storage', async () => s3.close());
  return storageByMode({ live: movedStorage(s3, local), sandbox: local });
}

/** @throws Error when only a part of it is configured: backups must not end up in another place than was meant */
function placeOf(config: ServerConfig | WorkerConfig): S3Place | null {
  const { BACKUPS_S3_BUCKET: bucket, BACKUPS_S3_ACCESS_KEY_ID: accessKeyId, BACKUPS_S3_SECRET_ACCESS_KEY: secretAccessKey } = config;
  const { BACKUPS_S3_ENDPOINT: endpoint, BACKUPS_S3_REGION: region, BACKUPS_S3_PREFIX: prefix } = config;
  if (bucket !== undefined && accessKeyId !== undefined && secretAccessKey !== undefined)
    return { endpoint, region, bucket, prefix, accessKeyId, secretAccessKey };
  if ([bucket, accessKeyId, secretAccessKey, endpoint].every((value) => value === undefined)) return null;
  throw new Error('BACKUPS_S3_BUCKET, BACKUPS_S3_ACCESS_KEY_ID and BACKUPS_S3_SECRET_ACCESS_KEY are needed together');
}
