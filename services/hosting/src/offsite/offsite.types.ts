import type { OffsiteCopyKind } from '@drydock/contracts/hosting/offsite';
import type { Mode } from '@drydock/contracts/platform/values';
import type { SkippedSummary } from '../backups/skipped.view';
import type {
  OffsiteCredentials,
  OffsitePlace,
  OffsiteReader,
  OffsiteStorage,
  OpenOptions,
} from '../providers/offsite-storage';
import type { RecordedAnswer } from '../sites/probe.rules';

/** A customer's place for copies of one site. */
export interface Destination extends OffsitePlace {
  id: string;
  siteId: string;
  orgId: string;
  mode: Mode;
  /** Only the holders of the key can open it; null once it is removed. */
  sealedCredentials: Buffer | null;
  encryptionKeyId: string | null;
  lastErrorCode: string;
}

/** The facts about a completed copy that every read of it is checked against. */
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
  /** The paths skipped in the whole site, for an incremental copy too. */
  skipped: SkippedSummary;
  /** How the site answered when it was taken. */
  answer: RecordedAnswer;
  createdAt: Date;
  completedAt: Date | null;
  verifiedAt: Date | null;
  /** The time when it was found to be gone from the storage. */
  missingAt: Date | null;
}

/** The readers with which a request may look at a destination. */
export interface OffsiteReaders {
  /** Whether requests in this mode may name the endpoint at all. */
  allows(endpoint: string, mode: Mode): boolean;
  seal(destination: SealedPlace, credentials: OffsiteCredentials): Buffer;
  open(destination: Destination, options?: OpenOptions): OffsiteReader;
}

/** The drivers with which a worker changes a destination. */
export interface OffsiteDrivers {
  open(destination: Destination, options?: OpenOptions): OffsiteStorage;
  /** Identifies the key that copies are encrypted with, without revealing it. */
  encryptionKeyId: string;
  /** Folder on the worker's disk for copies that are verified before use. */
  spoolDir: string;
}

/** The fields that sealed credentials are bound to. Copied into another row, they cannot be opened. */
export type SealedPlace = Pick<Destination, 'siteId' | 'endpoint' | 'bucket' | 'prefix'>;
