import { loadFindingsSchema } from '@drydock/agent/database';
import type { DatabaseBackupKind } from '@drydock/contracts/databases/database-backups';
import { majorSchema } from '@drydock/contracts/databases/major';
import { z } from 'zod';

export interface StoredArchive {
  storageKey: string;
  sizeBytes: number;
  /** The unpacked size in bytes; null for backups that earlier versions of Drydock took. */
  rawBytes: number | null;
  manifestMac: string;
  checksumSha256: string;
}

/**
 * The result of the latest load of the backup. `content`: the whole backup was loaded, and its rows were checked.
 * `schema`: only its schema was loaded, on trial.
 */
export const proofSchema = z.strictObject({
  of: z.enum(['content', 'schema']),
  major: majorSchema,
  at: z.iso.datetime(),
  /** The statements that Postgres refused in a trial. Empty after a load of the content. */
  refused: z.array(z.strictObject({ object: z.string(), reason: z.string() })),
  /** Parts that are missing, changed or unproven after the load. */
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
  /** Null until the backup is complete. */
  archive: StoredArchive | null;
  /** Null if the backup has never been loaded. */
  proof: BackupProof | null;
  createdAt: Date;
  completedAt: Date | null;
}
