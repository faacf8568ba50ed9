import type { ArchiveSink, ArchiveSource } from '@drydock/archive';
import type { DatabaseRef } from './database-provider';

/**
 * The storage of archives. Each key names a folder of objects. Each attempt writes its archive under a key of its own.
 * So a worker that has lost its lease cannot change an archive that another worker has verified.
 */
export interface BackupStorage {
  /**
   * The sink for the objects of an archive. An object is on disk once its write resolves. The manifest is written last,
   * and an archive without a manifest does not count.
   */
  sink(storageKey: string): ArchiveSink;
  /** The source of the objects of an archive. The read of a missing object rejects with ArchiveError `missing`. */
  source(storageKey: string): ArchiveSource;
  /**
   * The keys of the finished archives in the folder `prefix`, in no order. In the folder of a backup, each key is that
   * of a complete attempt.
   */
  listFinished(prefix: string): Promise<string[]>;
  /** Removes every archive in the folder `prefix` except `keep`. A missing folder is no error. */
  removeAll(prefix: string, keep?: string): Promise<void>;
}

/** The folder of all backups of a database. */
export const databaseBackupsPrefix = ({ mode, databaseId }: DatabaseRef): string => `${mode}/${databaseId}`;

/** The folder of all attempts at one backup. */
export const backupPrefix = (database: DatabaseRef, backupId: string): string =>
  `${databaseBackupsPrefix(database)}/${backupId}`;

const keyForm = /^(?:[a-z0-9][a-z0-9-]{0,63}\/){1,3}[a-z0-9][a-z0-9-]{0,63}$/;

/**
 * Throws an Error if the text is no storage key. Drydock makes all keys from ids, so this check only keeps a bug from
 * reaching outside the folder.
 */
export function assertStorageKey(key: string): void {
  if (!keyForm.test(key)) throw new Error(`not a storage key: ${key}`);
}
