import type { BackupKind, BackupStatus } from '@drydock/contracts/hosting/backups';
import type { Mode } from '@drydock/contracts/platform/values';
import type { BackupLocation } from '../providers/backup-storage';
import type { RecordedAnswer } from '../sites/probe.rules';
import type { SkippedSummary } from './skipped.view';

/**
 * The storage key of a completed backup, and the facts that its archive must match. An archive that does not match is
 * refused.
 */
export interface StoredArchive {
  storageKey: string;
  sizeBytes: number;
  /** Bytes of the content, unpacked. */
  rawBytes: number;
  checksumSha256: string;
  manifestMac: string;
}

/**
 * The facts about an archive that is verified and locked. Times are ISO 8601 text, because a step's output is kept as
 * JSON.
 */
export interface KeptBackup {
  completedAt: string;
  /** Null: the storage has no lock. */
  lockedUntil: string | null;
  location: BackupLocation;
}

export interface Backup {
  id: string;
  siteId: string;
  orgId: string;
  mode: Mode;
  kind: BackupKind;
  status: BackupStatus;
  sequence: number;
  includesFiles: boolean;
  includesDatabase: boolean;
  /** Null until it has completed. */
  archive: StoredArchive | null;
  errorCode: string;
  skipped: SkippedSummary;
  /** The site's answer when the backup was taken. */
  answer: RecordedAnswer;
  createdAt: Date;
  completedAt: Date | null;
  /** Null: the backup is kept until its deleted site is purged. */
  expiresAt: Date | null;
  lockedUntil: Date | null;
  /** The place where the archive was written. */
  location: BackupLocation;
}
