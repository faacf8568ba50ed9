import type { ArchiveSink, ArchiveSource } from '@drydock/archive';
import type { Mode } from '@drydock/contracts/platform/values';

/** The place at which a customer keeps copies. */
export interface OffsitePlace {
  /** `https://host[:port]` */
  endpoint: string;
  region: string;
  bucket: string;
  /** Folders without a slash at either end; '' is the whole bucket. */
  prefix: string;
}

/** A customer's place for copies of one site. */
export interface Destination extends OffsitePlace {
  id: string;
  siteId: string;
  orgId: string;
  mode: Mode;
  /** Null once the credentials were removed. */
  sealedCredentials: Buffer | null;
  encryptionKeyId: string | null;
  lastErrorCode: string;
}

/** The fields that sealed credentials are bound to, so that credentials copied into another row cannot be opened. */
export type SealedPlace = Pick<Destination, 'siteId' | 'endpoint' | 'bucket' | 'prefix'>;

/** The customer's secret. It is stored only sealed, and no answer shows it. */
export interface OffsiteCredentials {
  accessKeyId: string;
  secretAccessKey: string;
}

/** The times after which a call counts as failed. */
export interface OffsiteDeadlines {
  connectMs: number;
  /** The time without any byte. */
  idleMs: number;
  /** The time for a whole call, such as the reading of one object. */
  objectMs: number;
}

/** A customer's storage for request handlers, which only read. Close it after use. */
export interface OffsiteReader {
  /**
   * Reads objects of the archive in the folder `objectKey`. Rejects with ArchiveError `missing` for a missing object,
   * with {@link OffsiteError} for a permanent refusal, and with {@link OffsiteFailure} for a failure that may pass.
   * Reading stops with ArchiveError `tampered` at an object larger than any that Drydock writes.
   */
  source(objectKey: string): ArchiveSource;
  /**
   * The SHA-256 of the manifest of an archive, in hex. Rejects as `source` does. The manifest is not kept in memory, so
   * that a request can read many at once.
   */
  manifestSha256(objectKey: string): Promise<string>;
  close(): void;
}

/**
 * A customer's storage for workflow steps. Drydock does not control the storage, so answers may be false, slow, or of
 * any form.
 */
export interface OffsiteStorage extends OffsiteReader {
  /** Writes objects. An object is stored when its write resolves. The manifest must be written last. */
  sink(objectKey: string): ArchiveSink;
  /** Removes every object below `folderKey`, except those below `keep`. A missing folder is no error. */
  removeAll(folderKey: string, keep?: string): Promise<void>;
  /** Writes, reads, lists and deletes an object named after `id`. Rejects unless all four work. */
  probe(id: string): Promise<void>;
}

export type OffsiteRefusal = 'endpoint_refused' | 'credentials_rejected' | 'bucket_unusable';

/** A permanent refusal by the storage, or of its address by Drydock. `message` is for the log and has no credential. */
export class OffsiteError extends Error {
  readonly refusal: OffsiteRefusal;

  constructor(refusal: OffsiteRefusal, message: string, options?: ErrorOptions) {
    super(`${refusal}: ${message}`, options);
    this.name = 'OffsiteError';
    this.refusal = refusal;
  }
}

/**
 * A failure of the storage that may pass, such as a refused connection or HTTP 503. Its cause is the error of the call.
 * The class distinguishes this failure from those of the site's host and of our own database.
 */
export class OffsiteFailure extends Error {
  constructor(cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause), { cause });
    this.name = 'OffsiteFailure';
  }
}

export interface OpenOptions {
  signal?: AbortSignal;
  deadlines?: OffsiteDeadlines;
}

export type OpenOffsite = (
  place: OffsitePlace,
  credentials: OffsiteCredentials,
  options?: OpenOptions,
) => OffsiteStorage;

/** The folder of all attempts at one copy, below the prefix of the destination. */
export const copyFolder = (siteId: string, copyId: string): string => `${siteId}/${copyId}`;

/** The access of request handlers. They seal credentials and read a destination. */
export interface OffsiteReaders {
  allows(endpoint: string, mode: Mode): boolean;
  seal(destination: SealedPlace, credentials: OffsiteCredentials): Buffer;
  open(destination: Destination, options?: OpenOptions): OffsiteReader;
}

/** Bytes of a file system: those that are free for this process, and all of them. */
export interface DiskSpace {
  freeBytes: number;
  totalBytes: number;
}

/** The access of workflow steps. They change a destination. */
export interface OffsiteDrivers {
  open(destination: Destination, options?: OpenOptions): OffsiteStorage;
  /** An id of the key that encrypts copies. It does not reveal the key. */
  encryptionKeyId: string;
  /** The folder on the worker's disk for fetched copies. */
  spoolDir: string;
  /** The space of the file system of `spoolDir`, in bytes. */
  spoolSpace(): Promise<DiskSpace>;
}
