import { loadFindingsSchema } from '@drydock/agent/database';
import type { DatabaseBackupKind } from '@drydock/contracts/databases/database-backups';
import { majorSchema } from '@drydock/contracts/databases/major';
import { z } from 'zod';

export interface StoredArchive {
  storageKey: string;
  sizeBytes: number;
  /** The unpacked size; null for backups of earlier versions. */
  rawBytes: number | null;
  manifestMac: string;
  checksumSha256: string;
}

/**
 * The result of the latest load of a backup. `content`: all of it was loaded, and its counts compared. `schema`: only
 * its schema was loaded, on trial.
 */
export const proofSchema = z.strictObject({
  of: z.enum(['content', 'schema']),
  major: majorSchema,
  at: z.iso.datetime(),
  /** Statements that Postgres did not take. */
  refused: z.array(z.strictObject({ object: z.string(), reason: z.string() })),
  /** Parts that were restored with changes, although everything else is the same. */
  findings: loadFindingsSchema.default([]),
});
export type BackupProof = z.infer<typeof proofSchema>;

export interface DatabaseBackup {
  id: string;
  databaseId: string;
  kind: DatabaseBackupKind;
  status: 'queued' | 'running' | 'completed' | 'failed';
  engineVersion: string;
  sequence: number;
  /** Null until it is completed. */
  archive: StoredArchive | null;
  /** Null: it has never been loaded. */
  proof: BackupProof | null;
  createdAt: Date;
  completedAt: Date | null;
}
