import type { ArchiveSink, ArchiveSource } from '@drydock/archive';
import type { DatabaseRef } from './database-provider';

/**
 * The storage of archives. Each key names a folder of objects. Each attempt at a backup writes its archive under its
 * own key, so a worker that has lost its lease cannot change an archive that another worker has verified.
 */
export interface BackupStorage {
  /**
   * The sink for the objects of an archive. The manifest is written last. Once it is written, all objects are durable.
   * An archive without a manifest does not count.
   */
  sink(storageKey: string): ArchiveSink;
  /** The source of the objects of an archive. Reading a missing object rejects with ArchiveError `missing`. */
  source(storageKey: string): ArchiveSource;
  /** The keys of the archives in the folder `prefix` that have a manifest, in no order. */
  listFinished(prefix: string): Promise<string[]>;
  /** Removes every archive in the folder `prefix` except `keep`. A missing folder is no error. */
  removeAll(prefix: string, keep?: string): Promise<void>;
}

export const databaseBackupsPrefix = ({ mode, databaseId }: DatabaseRef): string => `${mode}/${databaseId}`;

/** The folder of all attempts at one backup. */
export const backupPrefix = (database: DatabaseRef, backupId: string): string =>
  `${databaseBackupsPrefix(database)}/${backupId}`;

const keyForm = /^(?:[a-z0-9][a-z0-9-]{0,63}\/){1,3}[a-z0-9][a-z0-9-]{0,63}$/;

/**
 * Throws an Error if the text is not a storage key. Drydock makes all keys from ids, so only a defect could lead
 * outside the folder of backups.
 */
export function assertStorageKey(key: string): void {
  if (!keyForm.test(key)) throw new Error(`not a storage key: ${key}`);
}
