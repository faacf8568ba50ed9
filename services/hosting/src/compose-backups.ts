import { ArchiveError, type ArchiveSource } from '@drydock/archive';
import type { Lifetime } from '@drydock/service/process';
import type { ServerConfig, WorkerConfig } from './config';
import type { BackupReader, BackupStorage } from './providers/backup-storage';
import { localBackupStorage } from './providers/backup-storage.local';
import { s3BackupReader, s3BackupStorage } from './providers/backup-storage.s3';
import type { S3Place } from './providers/s3-place';

/**
 * Keeps sandbox backups in a place of their own, so that a client's tests never touch live ones. The mode is the first
 * part of every key.
 */
export function storageByMode({ live, sandbox }: { live: BackupStorage; sandbox: BackupStorage }): BackupStorage {
  const of = (mode: string): BackupStorage => (mode === 'sandbox' ? sandbox : live);
  const ofKey = (key: string): BackupStorage => of(key.split('/', 1)[0] ?? '');
  return {
    locationIn: (mode) => of(mode).locationIn(mode),
    placeIn: (mode) => of(mode).placeIn(mode),
    sink: (key) => ofKey(key).sink(key),
    source: (key) => ofKey(key).source(key),
    has: (key) => ofKey(key).has(key),
    listFinished: (prefix) => ofKey(prefix).listFinished(prefix),
    removeAll: (prefix, keep) => ofKey(prefix).removeAll(prefix, keep),
    lock: (key, until) => ofKey(key).lock(key, until),
    canary: (mode) => of(mode).canary(mode),
  };
}

const isMissing = (error: unknown): boolean => error instanceof ArchiveError && error.reason === 'missing';

/** Looks in `current`, then in the place where backups were before. */
const movedReader = (current: BackupReader, former: BackupReader): BackupReader => ({
  locationIn: (mode) => current.locationIn(mode),
  placeIn: (mode) => current.placeIn(mode),
  has: async (key) => (await current.has(key)) || (await former.has(key)),
});

/**
 * Writes to `current`. Backups in `former` stay there and are found there, so that object storage can be configured at
 * any time.
 */
export function movedStorage(current: BackupStorage, former: BackupStorage): BackupStorage {
  return {
    ...current,
    source: (key): ArchiveSource => {
      const [here, there] = [current.source(key), former.source(key)];
      return {
        read: (name) =>
          here.read(name).catch((error: unknown) => {
            if (isMissing(error)) return there.read(name);
            throw error;
          }),
      };
    },
    ...movedReader(current, former),
    listFinished: async (prefix) => [
      ...new Set([...(await current.listFinished(prefix)), ...(await former.listFinished(prefix))]),
    ],
    removeAll: async (prefix, keep) => {
      await former.removeAll(prefix, keep);
      return current.removeAll(prefix, keep);
    },
  };
}

/**
 * Live backups go to object storage if it is configured. Those of the sandbox, and those from before, are in the
 * folder.
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

/** Opens the places of backups for a process that only checks whether a backup exists. */
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

/** @throws Error when only a part of it is configured, so that no backup is stored in an unintended place */
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
