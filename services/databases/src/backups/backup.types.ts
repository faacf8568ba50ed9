import type { DatabaseBackupKind } from '@drydock/contracts/databases/database-backups';

export interface StoredArchive {
  storageKey: string;
  sizeBytes: number;
  /** Unpacked; null of backups from before it was kept. */
  rawBytes: number | null;
  manifestMac: string;
  checksumSha256: string;
}

export interface DatabaseBackup {
  id: string;
  databaseId: string;
  kind: DatabaseBackupKind;
  status: 'queued' | 'running' | 'completed' | 'failed';
  engineVersion: string;
  sequence: number;
  /** Null until it is completed. */
  archive: StoredArchive | null;
  createdAt: Date;
  completedAt: Date | null;
}
