import type { ArchiveSink, ArchiveSource } from '@drydock/archive';
import type { Mode } from '@drydock/contracts/platform/values';

/** One version of a test object that a check tries to delete. */
export interface Canary {
  key: string;
  versionId: string;
}

/**
 * The storage's answer to a delete of one version. A lock may be the reason for `refused`. Any other error is
 * `unclassified`.
 */
export type DeleteAnswer = 'deleted' | 'refused' | 'unclassified';

/** Test objects beside the backups. They show whether a lock really prevents a delete. */
export interface CanaryStorage {
  hasLock(): Promise<boolean>;
  /**
   * Writes an object under a COMPLIANCE lock until `until`. Rejects with {@link CanaryError} if the storage refuses the
   * credential or the write.
   */
  write(name: string, until: Date): Promise<Canary>;
  /** The lock that the storage reports for this version. Null if there is none. */
  readLock(canary: Canary): Promise<{ mode: string; until: Date } | null>;
  /** Deletes this version. A delete that names no version would only hide the object, and prove nothing. */
  delete(canary: Canary): Promise<DeleteAnswer>;
  exists(canary: Canary): Promise<boolean>;
  /** Removes the canaries of former days whose lock is over. */
  removeUnlocked(): Promise<void>;
}

/** A permanent refusal. Any other rejection means that the storage did not answer. */
export class CanaryError extends Error {
  readonly reason: 'credential_missing' | 'canary_write_failed';

  constructor(reason: CanaryError['reason'], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = 'CanaryError';
    this.reason = reason;
  }
}

/** The place of backups, as the API names it. */
export type BackupLocation = 'worker_host' | 'object_storage';

/** The storage as the API sees it. The API can ask whether an archive exists, but cannot read one. */
export interface BackupReader {
  /** The kind of place where backups of this mode are written. */
  locationIn(mode: Mode): BackupLocation;
  /**
   * Names the place where backups of this mode are written, without any secret. A proof about one place says nothing
   * about another place.
   */
  placeIn(mode: Mode): string;
  /** Whether there is a finished archive, which is one with a manifest. Rejects if the storage does not answer. */
  has(storageKey: string): Promise<boolean>;
}

interface Removal {
  /** How many objects a lock has kept from being removed. */
  lockedObjects: number;
}

/**
 * The storage of archives. A key names a folder of objects. Each attempt at a backup gets its own key, so a worker that
 * has lost its lease cannot change an archive that another worker has verified.
 */
export interface BackupStorage extends BackupReader {
  /**
   * Reads objects. Rejects with ArchiveError `missing` for a missing object, and with another error if the storage does
   * not answer.
   */
  source(storageKey: string): ArchiveSource;
  /**
   * Writes objects. The manifest must be written last, because an archive counts as finished once it has a manifest.
   * When the write of the manifest resolves, all objects of the archive are durable.
   */
  sink(storageKey: string): ArchiveSink;
  /**
   * The keys of the finished archives in the folder `prefix`, in no order: one for each attempt that has written a
   * manifest.
   */
  listFinished(prefix: string): Promise<string[]>;
  /**
   * Removes every archive in the folder `prefix`, except the archive with the key `keep`, and except locked objects. A
   * missing folder is no error.
   */
  removeAll(prefix: string, keep?: string): Promise<Removal>;
  /**
   * Locks the archive until `until`, so that nobody, not even Drydock, can change or remove it. Resolves with the end
   * of the lock once the storage has confirmed it, or with null if the storage has no locks. A repeated call may only
   * extend the lock.
   */
  lock(storageKey: string, until: Date): Promise<Date | null>;
  /** The test objects in the storage of this mode. Null for a folder on the worker, which has no locks. */
  canary(mode: Mode): CanaryStorage | null;
}

/** The folder of all attempts at one backup. */
export const backupPrefix = ({
  mode,
  orgId,
  siteId,
  id,
}: {
  mode: string;
  orgId: string;
  siteId: string;
  id: string;
}): string => `${mode}/${orgId}/${siteId}/${id}`;

/** The key of one attempt. The key ends with the fence of the attempt, which no other attempt at the backup has. */
export const attemptKey = (prefix: string, fence: string): string => `${prefix}/${fence}`;

/** The folder of all attempts at a backup, from the key of one attempt. */
export const prefixOfKey = (storageKey: string): string => storageKey.slice(0, storageKey.lastIndexOf('/'));

/** The folder of all attempts at a backup. A failed backup has no storage key, but attempts may have left objects. */
export const backupFolder = (backup: {
  storageKey: string | null;
  mode: string;
  orgId: string;
  siteId: string;
  id: string;
}): string => (backup.storageKey === null ? backupPrefix(backup) : prefixOfKey(backup.storageKey));

/**
 * The form of a key, and of a folder of keys, which has one segment less. Keys of earlier versions have no
 * organisation, and so one segment less too.
 */
const keyForm = /^(?:[a-z0-9][a-z0-9-]{0,63}\/){2,4}[a-z0-9][a-z0-9-]{0,63}$/;

/** Keys are made from ids, but a malformed key must not reach outside the storage's folder. @throws Error */
export function assertStorageKey(key: string): void {
  if (!keyForm.test(key)) throw new Error(`not a storage key: ${key}`);
}
