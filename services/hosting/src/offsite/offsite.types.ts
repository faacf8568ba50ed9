import type { OffsiteCopyKind } from '@drydock/contracts/hosting/offsite';
import type { SkippedSummary } from '../backups/skipped.view';
import type { RecordedAnswer } from '../sites/probe.rules';

/** The recorded facts about a completed copy. Every read of the copy is compared with them. */
export interface CopyArchive {
  objectKey: string;
  sizeBytes: number;
  /** Bytes of the archive's own content, unpacked. */
  rawBytes: number;
  manifestSha256: string;
  manifestMac: string;
}

export interface Copy {
  id: string;
  destinationId: string;
  kind: OffsiteCopyKind;
  status: 'running' | 'completed' | 'failed';
  /** The copy that an incremental one continues. */
  parentId: string | null;
  sequence: number;
  archive: CopyArchive | null;
  /** The paths skipped in the whole site. An incremental copy also lists all of them. */
  skipped: SkippedSummary;
  /** How the site answered when the copy was taken. */
  answer: RecordedAnswer;
  createdAt: Date;
  completedAt: Date | null;
  verifiedAt: Date | null;
  /** The time when the copy was found to be gone from the storage. */
  missingAt: Date | null;
}
