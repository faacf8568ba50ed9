/**
 * The place to which an archive is written. An object is at most about 24 MB, and may be written again under the same
 * name (when a file is tried again).
 */
export interface ArchiveSink {
  /** Resolves once the object is durable. */
  write(name: string, bytes: Buffer): Promise<void>;
}

/** The source from which an archive is read. */
export interface ArchiveSource {
  /**
   * Returns the whole object, in a Buffer that belongs to the reader from then on (it may be moved to a thread).
   * Rejects with ArchiveError `missing` when the object does not exist, and with any other error when that cannot be
   * known.
   */
  read(name: string): Promise<Buffer>;
  /**
   * Only for a source that verifies objects when they come in. Resolves once the piece has come in and has been
   * verified. Whoever verifies an archive then need not read it again. Rejects as `read` does, and with what
   * `piece.verify` throws.
   */
  hold?(piece: SealedPiece): Promise<void>;
}

/** An object of an archive, as the level above it names it. */
export interface SealedPiece {
  name: string;
  /** Bytes. */
  size: number;
  /**
   * Compares the MACs of the object. @throws ArchiveError `missing`, `truncated`, `foreign`, `tampered` or `mismatch`
   */
  verify(bytes: Buffer): void;
}

export const manifestName = 'manifest';

/** `segment-00000012` */
export function segmentName(number: number): string {
  return `segment-${String(number).padStart(8, '0')}`;
}

/** `index-00000012` */
export function blockName(number: number): string {
  return `index-${String(number).padStart(8, '0')}`;
}

/** Whether an object of an archive can have this name. A store may use it as the last part of a path or key. */
export function isObjectName(name: string): boolean {
  return name === manifestName || /^(?:segment|index)-\d{8,10}$/.test(name);
}
