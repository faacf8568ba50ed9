import type { ArchiveSink, ArchiveSource } from '@drydock/archive/archive-objects';

/**
 * Where archives are kept: a key names a folder of objects. Each archive is written under a key of its own that is never written again,
 * so that a worker which lost its lease cannot change what another one has verified.
 */
export interface BackupReader {
  /** What the surface calls its place. */
  readonly location: 'worker_host' | 'object_storage';
  /** Reads objects; one that is missing rejects with ArchiveError `truncated`, a storage that cannot be asked with anything else. */
  source(storageKey: string): ArchiveSource;
  /** Whether a finished archive (one with a manifest) lies there. Rejects when that cannot be known. */
  has(storageKey: string): Promise<boolean>;
}

export interface BackupStorage extends BackupReader {
  /** Writes objects; each is durable once its write resolves. The manifest comes last: without it there is no archive. */
  sink(storageKey: string): ArchiveSink;
  /** Removes every archive whose key begins with the folder `prefix`, except `keep`. Not there is no error. */
  removeAll(prefix: string, keep?: string): Promise<void>;
}

/** Folder of all attempts at one backup. */
export const backupPrefix = ({ mode, siteId, id }: { mode: string; siteId: string; id: string }): string => `${mode}/${siteId}/${id}`;

/** One attempt's: named after its fence, which no other attempt ever has. */
export const attemptKey = (prefix: string, fence: string): string => `${prefix}/${fence}`;
