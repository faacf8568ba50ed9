import type { BackupKind, BackupStatus } from '@drydock/contracts/hosting/backups';
import type { Mode } from '@drydock/contracts/platform/values';
import type { BackupLocation } from '../providers/backup-storage';
import type { RecordedAnswer } from '../sites/probe.rules';
import type { SkippedSummary } from './skipped.view';

/** The storage key of a completed backup, and the recorded facts. An archive that does not match them is refused. */
export interface StoredArchive {
  storageKey: string;
  sizeBytes: number;
  /** Bytes of the content, unpacked. */
  rawBytes: number;
  /** The SHA-256 of the manifest, in hex. */
  checksumSha256: string;
  manifestMac: string;
}

/**
 * The facts about an archive that is verified and locked. Times are ISO 8601 text, because the output of a step is
 * stored as JSON.
 */
export interface KeptBackup {
  completedAt: string;
  /** Null if the storage has no locks. */
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
  /** Null until the backup has completed. */
  archive: StoredArchive | null;
  errorCode: string;
  skipped: SkippedSummary;
  /** The site's answer when the backup was taken. */
  answer: RecordedAnswer;
  createdAt: Date;
  completedAt: Date | null;
  /** Null if the backup is kept until its deleted site is purged. */
  expiresAt: Date | null;
  lockedUntil: Date | null;
  /** The place where the archive was written. */
  location: BackupLocation;
}
