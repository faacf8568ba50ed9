import type { ArchiveSink, ArchiveSource } from '@drydock/archive';
import type { Mode } from '@drydock/contracts/platform/values';

/** One version of a test object. A check tries to delete it. */
export interface Canary {
  key: string;
  versionId: string;
}

/**
 * The storage's answer to a delete of one version. `refused` may come from a lock. `unclassified` is any other error.
 */
export type DeleteAnswer = 'deleted' | 'refused' | 'unclassified';

/** Test objects beside the backups, under the same prefix. They show whether a lock really prevents deletion. */
export interface CanaryStorage {
  /** Whether the bucket offers locks. */
  hasLock(): Promise<boolean>;
  /**
   * Writes an object under a COMPLIANCE lock that ends at `until`. Rejects with {@link CanaryError} if the credential
   * is missing or refused.
   */
  write(name: string, until: Date): Promise<Canary>;
  /** The lock that the storage reports for this version. Null if there is none. */
  readLock(canary: Canary): Promise<{ mode: string; until: Date } | null>;
  /** Deletes this version. A delete without a version would only hide the object and prove nothing. */
  delete(canary: Canary): Promise<DeleteAnswer>;
  exists(canary: Canary): Promise<boolean>;
  /** Removes the canaries of former days whose lock is over. */
  removeUnlocked(): Promise<void>;
}

/** A permanent refusal by the storage. Any other rejection means that the storage could not be asked. */
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

/** Tells whether backups exist, for a process that may not read them. */
export interface BackupReader {
  /** The kind of place where backups of this mode are written. */
  locationIn(mode: Mode): BackupLocation;
  /**
   * Identifies the place where backups of this mode are written, without any secret. A proof about one storage proves
   * nothing about another storage.
   */
  placeIn(mode: Mode): string;
  /**
   * Whether a finished archive exists. An archive is finished when it has a manifest. Rejects if the storage cannot be
   * asked.
   */
  has(storageKey: string): Promise<boolean>;
}

interface Removal {
  /** The number of objects that a lock keeps from being removed. */
  lockedObjects: number;
}

/**
 * The storage of archives: a key names a folder of objects. Each archive gets a new key. So a worker that has lost its
 * lease cannot change an archive that another worker has verified.
 */
export interface BackupStorage extends BackupReader {
  /**
   * Reads objects. A missing object rejects with ArchiveError `missing`. A storage that cannot be asked rejects with
   * another error.
   */
  source(storageKey: string): ArchiveSource;
  /**
   * Writes objects. An object is durable when its write resolves. The manifest must be written last, because an archive
   * without a manifest does not count.
   */
  sink(storageKey: string): ArchiveSink;
  /**
   * Keys of the finished archives in the folder `prefix`, in no order. The folder of a backup has a finished archive
   * for each completed attempt.
   */
  listFinished(prefix: string): Promise<string[]>;
  /**
   * Removes every archive whose key begins with the folder `prefix`, except `keep` and locked objects. A missing folder
   * is no error.
   */
  removeAll(prefix: string, keep?: string): Promise<Removal>;
  /**
   * Locks the archive until `until`, so that nobody, not even Drydock, can change or remove it. Resolves with the end
   * of the lock when the storage has confirmed it. Resolves with null if the storage has no locks. May be called again
   * with a later time.
   */
  lock(storageKey: string, until: Date): Promise<Date | null>;
  /** Access to test objects in this mode's storage. Null if the storage cannot have locks. */
  canary(mode: Mode): CanaryStorage | null;
}

/** Folder of all attempts at one backup. */
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

/** The key of one attempt. It ends with the attempt's fence, a number that no other attempt has. */
export const attemptKey = (prefix: string, fence: string): string => `${prefix}/${fence}`;

/** The folder of all attempts to which the attempt with this key belongs. */
export const prefixOfKey = (storageKey: string): string => storageKey.slice(0, storageKey.lastIndexOf('/'));

/**
 * The folder of a backup's archives. It holds the archives of all attempts, because any attempt of a failed backup may
 * have left objects.
 */
export const backupFolder = (backup: {
  storageKey: string | null;
  mode: string;
  orgId: string;
  siteId: string;
  id: string;
}): string => (backup.storageKey === null ? backupPrefix(backup) : prefixOfKey(backup.storageKey));

/** The form of a key. Keys from before keys contained the organisation have one segment less. */
const keyForm = /^(?:[a-z0-9][a-z0-9-]{0,63}\/){2,4}[a-z0-9][a-z0-9-]{0,63}$/;

/** Drydock makes keys from ids. This check prevents access outside the folder if a key is wrong. @throws Error */
export function assertStorageKey(key: string): void {
  if (!keyForm.test(key)) throw new Error(`not a storage key: ${key}`);
}
