import type { ArchiveSink, ArchiveSource } from '@drydock/archive';
import type { Mode } from '@drydock/contracts/platform/values';
import type { Destination, OffsitePlace, SealedPlace } from './offsite-place.types';

/** The customer's secret. It is in memory while a storage is open, and is stored only sealed. */
export interface OffsiteCredentials {
  accessKeyId: string;
  secretAccessKey: string;
}

/** Limits after which a call counts as failed, in milliseconds. */
export interface OffsiteDeadlines {
  connectMs: number;
  /** The time without any byte. */
  idleMs: number;
  /** The time for one object, from its first byte to its last. */
  objectMs: number;
}

/** Access to a customer's storage for requests, which only read. Close it after use. */
export interface OffsiteReader {
  /**
   * Reads objects of the archive in `objectKey`, a folder below the prefix. A missing object rejects with ArchiveError
   * `missing`, a permanent refusal with {@link OffsiteError}. Any other error may be transient. An object larger than
   * any object of an archive is refused before its end.
   */
  source(objectKey: string): ArchiveSource;
  /**
   * The SHA-256 of the manifest of the archive in `objectKey`, in hex. Rejects as `source` does. No manifest is kept in
   * memory, so that a request can read many manifests at once.
   */
  manifestSha256(objectKey: string): Promise<string>;
  close(): void;
}

/**
 * Access to a customer's storage for workflow steps. The storage is not under Drydock's control, so its answers may be
 * false, slow, or of any form.
 */
export interface OffsiteStorage extends OffsiteReader {
  /** Writes objects. An object is stored when its write resolves. The manifest must be written last. */
  sink(objectKey: string): ArchiveSink;
  /** Removes every object below the folder `folderKey`, except those below `keep`. A missing folder is no error. */
  removeAll(folderKey: string, keep?: string): Promise<void>;
  /** Writes, reads, lists and deletes an object named after `id`. Rejects unless each of the four calls works. */
  probe(id: string): Promise<void>;
}

export type OffsiteRefusal = 'endpoint_refused' | 'credentials_rejected' | 'bucket_unusable';

/**
 * A permanent refusal by the storage or by the check of its address. `message` is for the log and holds no credential.
 */
export class OffsiteError extends Error {
  readonly refusal: OffsiteRefusal;

  constructor(refusal: OffsiteRefusal, message: string, options?: ErrorOptions) {
    super(`${refusal}: ${message}`, options);
    this.name = 'OffsiteError';
    this.refusal = refusal;
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

/** Folder of all attempts at one copy, below the destination's prefix. */
export const copyFolder = (siteId: string, copyId: string): string => `${siteId}/${copyId}`;

/** The functions with which a request may seal credentials and read a destination. */
export interface OffsiteReaders {
  /** Whether a site of this mode may use the endpoint. */
  allows(endpoint: string, mode: Mode): boolean;
  seal(destination: SealedPlace, credentials: OffsiteCredentials): Buffer;
  open(destination: Destination, options?: OpenOptions): OffsiteReader;
}

/** The drivers with which a worker changes a destination. */
export interface OffsiteDrivers {
  open(destination: Destination, options?: OpenOptions): OffsiteStorage;
  /** Identifies the key that copies are encrypted with, without revealing it. */
  encryptionKeyId: string;
  /** Folder on the worker's disk for fetched copies, which are verified before their use. */
  spoolDir: string;
}
