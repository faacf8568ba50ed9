import type { ByteString } from './path-bytes';

/** Codes of the index. A tombstone says that the path, present in the parent archive, is gone. */
export const entryTypes = { file: 1, directory: 2, symlink: 3, hardlink: 4, tombstone: 5, fifo: 6 } as const;
export type EntryType = keyof typeof entryTypes;

/** One path of a root, as the index holds it. */
export interface Entry {
  type: EntryType;
  path: ByteString;
  /** Permission bits. For files, directories and FIFOs also the set-id and sticky bits. */
  mode: number;
  /** Modification time: whole seconds since 1970, may be negative, and the nanoseconds of that second. */
  mtimeSeconds: number;
  mtimeNanoseconds: number;
  /** Bytes of content; 0 for everything but files. */
  size: number;
  /** A file, symlink or FIFO that has several names, or had when it was packed. Hard links may point to it. */
  linked: boolean;
  /** A file with holes: runs of zeros that take no room on disk, and must take none after a restore. */
  sparse: boolean;
  /** SHA-256 of the content of a file; empty otherwise. */
  sha256: Buffer;
  /**
   * The target of a symlink as it is stored. For a hard link, the path (in the same root) of the file that it shares.
   * Otherwise ''.
   */
  link: ByteString;
  /** Extended attributes and access lists of a file, directory or FIFO, encoded (attributes.ts); empty for most. */
  attributes: Buffer;
}

const noBytes = Buffer.alloc(0);

/** A tombstone of a path. */
export function tombstoneOf(path: ByteString): Entry {
  return {
    type: 'tombstone',
    path,
    mode: 0,
    mtimeSeconds: 0,
    mtimeNanoseconds: 0,
    size: 0,
    linked: false,
    sparse: false,
    sha256: noBytes,
    link: '',
    attributes: noBytes,
  };
}

/**
 * Whether a live path is still as the parent archive recorded it, apart from its attributes. Content counts as equal
 * when size, mode and time (to the nanosecond) are equal.
 */
export function isUnchanged(live: Omit<Entry, 'sha256' | 'attributes'>, recorded: Entry): boolean {
  return (
    live.type === recorded.type &&
    live.size === recorded.size &&
    live.mode === recorded.mode &&
    live.mtimeSeconds === recorded.mtimeSeconds &&
    live.mtimeNanoseconds === recorded.mtimeNanoseconds &&
    live.linked === recorded.linked &&
    live.link === recorded.link
  );
}
