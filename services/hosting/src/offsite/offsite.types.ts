import type { OffsiteCopyKind } from '@drydock/contracts/hosting/offsite';
import type { SkippedSummary } from '../backups/skipped.view';
import type { RecordedAnswer } from '../sites/probe.rules';

/** The recorded facts about a completed copy. Every read is compared with them. */
export interface CopyArchive {
  objectKey: string;
  sizeBytes: number;
  /** Bytes of the archive's own content, unpacked; without those of its parents. */
  rawBytes: number;
  manifestSha256: string;
  manifestMac: string;
}

export interface Copy {
  id: string;
  destinationId: string;
  kind: OffsiteCopyKind;
  status: 'running' | 'completed' | 'failed';
  /** The copy that an incremental copy continues. */
  parentId: string | null;
  sequence: number;
  archive: CopyArchive | null;
  /** The paths skipped in the whole site, also in an incremental copy. */
  skipped: SkippedSummary;
  /** How the site answered when the copy was taken. */
  answer: RecordedAnswer;
  createdAt: Date;
  completedAt: Date | null;
  verifiedAt: Date | null;
  /** The time when the storage was found not to have the copy any more. */
  missingAt: Date | null;
}
