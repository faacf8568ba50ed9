/** Where an archive is written. An object is at most about 24 MB and may be written again under the same name (a retried file). */
export interface ArchiveSink {
  /** Resolves once the object is durable. */
  write(name: string, bytes: Buffer): Promise<void>;
}

/** Where an archive is read. */
export interface ArchiveSource {
  /** The whole object, in a Buffer that is the reader's from then on (it may be moved to a thread). Rejects with ArchiveError `missing` when it does not exist, with anything else when it cannot be known. */
  read(name: string): Promise<Buffer>;
  /**
   * Only of a source that verifies objects on their way in: resolves once the piece has come in and was what it had to be, and whoever
   * verifies an archive need not read it again. Rejects as `read` does, and with what `piece.verify` throws.
   */
  hold?(piece: SealedPiece): Promise<void>;
}

/** An object of an archive as the level above names it. */
export interface SealedPiece {
  name: string;
  /** Bytes. */
  size: number;
  /** Compares its MACs. @throws ArchiveError `missing`, `truncated`, `foreign`, `tampered` or `mismatch` */
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

/** Whether a name is one that an archive can have: a store may use it as the last part of a path or key. */
export function isObjectName(name: string): boolean {
  return name === manifestName || /^(?:segment|index)-\d{8,10}$/.test(name);
}
