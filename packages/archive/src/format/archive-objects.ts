/**
 * The place to which an archive is written. An object has at most about 24 MB. It may be written again under its name,
 * when a changed file is read again.
 */
export interface ArchiveSink {
  /** Resolves when the object is durable. */
  write(name: string, bytes: Buffer): Promise<void>;
}

/** The source from which an archive is read. */
export interface ArchiveSource {
  /**
   * Returns the whole object. The Buffer belongs to the caller, which may move it to a thread. Rejects with
   * ArchiveError `missing` if the object does not exist, and with another error if that is unknown.
   */
  read(name: string): Promise<Buffer>;
  /**
   * Fetches and verifies a piece, if the source itself verifies incoming objects. `verifyPiece` then need not read it
   * again. Rejects like `read`, or with the error of `piece.verify`.
   */
  hold?(piece: SealedPiece): Promise<void>;
}

/** An object as its manifest or block records it. */
export interface SealedPiece {
  name: string;
  /** The object's size in bytes. */
  size: number;
  /** Compares the object's MACs. @throws ArchiveError `missing`, `truncated`, `foreign`, `tampered` or `mismatch` */
  verify(bytes: Buffer): void;
}

export const manifestName = 'manifest';

/** Returns a name such as `segment-00000012`. */
export function segmentName(number: number): string {
  return `segment-${String(number).padStart(8, '0')}`;
}

/** Returns a name such as `index-00000012`. */
export function blockName(number: number): string {
  return `index-${String(number).padStart(8, '0')}`;
}

/** Tells whether the name can be an object's name, so that a store may safely use it in a path or key. */
export function isObjectName(name: string): boolean {
  return name === manifestName || /^(?:segment|index)-\d{8,10}$/.test(name);
}
