import type { ArchiveSink, ArchiveSource } from '@drydock/archive';
import type { DatabaseRef } from './database-provider';

/**
 * The storage of archives: a key names a folder of objects. Each archive is written under a key of its own that is
 * never used again, so that a worker that lost its lease cannot change an archive that another one has verified.
 */
export interface BackupStorage {
  /**
   * Writes objects; each is durable once its write resolves. The manifest comes last: without it there is no archive.
   */
  sink(storageKey: string): ArchiveSink;
  /** Reads objects; one that is missing rejects with ArchiveError `missing`. */
  source(storageKey: string): ArchiveSource;
  /**
   * Keys of the finished archives in the folder `prefix`, in no order. For the folder of a backup these are its
   * attempts that were completed.
   */
  listFinished(prefix: string): Promise<string[]>;
  /**
   * Removes every archive whose key begins with the folder `prefix`, except `keep`. A folder that is not there is no
   * error.
   */
  removeAll(prefix: string, keep?: string): Promise<void>;
}

/** The folder of all backups of a database. */
export const databaseBackupsPrefix = ({ mode, databaseId }: DatabaseRef): string => `${mode}/${databaseId}`;

/** The folder of all attempts at one backup. */
export const backupPrefix = (database: DatabaseRef, backupId: string): string =>
  `${databaseBackupsPrefix(database)}/${backupId}`;

const keyForm = /^(?:[a-z0-9][a-z0-9-]{0,63}\/){1,3}[a-z0-9][a-z0-9-]{0,63}$/;

/** Keys are our own, made of ids; this check keeps a bug from reaching outside the folder. @throws Error */
export function assertStorageKey(key: string): void {
  if (!keyForm.test(key)) throw new Error(`not a storage key: ${key}`);
}
