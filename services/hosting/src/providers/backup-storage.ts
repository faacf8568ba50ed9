import type { ArchiveSink, ArchiveSource } from '@drydock/archive/format/archive-objects';
import type { Mode } from '@drydock/contracts/platform/values';
import type { CanaryStorage } from './canary-storage';

/** The place of backups, in the words of the API. */
export type BackupLocation = 'worker_host' | 'object_storage';

/** Whether backups are there, for whoever may not read them. */
export interface BackupReader {
  /** Where backups of this world are written. */
  locationIn(mode: Mode): BackupLocation;
  /** Names that place, without any secret: what was proven of one says nothing about the next. */
  placeIn(mode: Mode): string;
  /** Whether a finished archive (one with a manifest) lies there. Rejects when that cannot be known. */
  has(storageKey: string): Promise<boolean>;
}

export interface Removal {
  /** Objects that are still there because a lock keeps everybody from removing them. */
  lockedObjects: number;
}

/**
 * Where archives are kept: a key names a folder of objects. Each archive is written under a key of its own that is never written again,
 * so that a worker which lost its lease cannot change what another one has verified.
 */
export interface BackupStorage extends BackupReader {
  /** Reads objects; one that is missing rejects with ArchiveError `missing`, a storage that cannot be asked with anything else. */
  source(storageKey: string): ArchiveSource;
  /** Writes objects; each is durable once its write resolves. The manifest comes last: without it there is no archive. */
  sink(storageKey: string): ArchiveSink;
  /** Keys of the finished archives in the folder `prefix`, in no order: the attempts at one backup that came to their end. */
  listFinished(prefix: string): Promise<string[]>;
  /** Removes every archive whose key begins with the folder `prefix`, except `keep` and what is locked. Not there is no error. */
  removeAll(prefix: string, keep?: string): Promise<Removal>;
  /**
   * Keeps everybody, us included, from altering or removing the archive before `until`. Resolves with that time once the storage has
   * confirmed it, or with null where the storage has no such lock. May be called again with a later time.
   */
  lock(storageKey: string, until: Date): Promise<Date | null>;
  /** The storage to test the locks of this mode with; null if its storage has no locks. */
  canary(mode: Mode): CanaryStorage | null;
}

/** Folder of all attempts at one backup. */
export const backupPrefix = ({ mode, orgId, siteId, id }: { mode: string; orgId: string; siteId: string; id: string }): string =>
  `${mode}/${orgId}/${siteId}/${id}`;

/** One attempt's: named after its fence, which no other attempt ever has. */
export const attemptKey = (prefix: string, fence: string): string => `${prefix}/${fence}`;

/** The folder of all attempts, of one of them. */
export const prefixOfKey = (storageKey: string): string => storageKey.slice(0, storageKey.lastIndexOf('/'));

/** Where a backup's archives lie; of one that failed nobody knows which of its attempts have left something. */
export const backupFolder = (backup: { storageKey: string | null; mode: string; orgId: string; siteId: string; id: string }): string =>
  backup.storageKey === null ? backupPrefix(backup) : prefixOfKey(backup.storageKey);

/** Backups that were taken before organisations were part of keys have one segment less. */
const keyForm = /^(?:[a-z0-9][a-z0-9-]{0,63}\/){2,4}[a-z0-9][a-z0-9-]{0,63}$/;

/** Keys are ours, made of ids; this is what keeps a bug from reaching beside the folder. @throws Error */
export function assertStorageKey(key: string): void {
  if (!keyForm.test(key)) throw new Error(`not a storage key: ${key}`);
}
