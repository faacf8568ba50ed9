export interface StoredArchive {
  storageKey: string;
  sizeBytes: number;
  manifestMac: string;
  checksumSha256: string;
}

export interface DatabaseBackup {
  id: string;
  databaseId: string;
  status: 'queued' | 'running' | 'completed' | 'failed';
  engineVersion: string;
  sequence: number;
  /** Null until it is completed. */
  archive: StoredArchive | null;
  createdAt: Date;
  completedAt: Date | null;
}
