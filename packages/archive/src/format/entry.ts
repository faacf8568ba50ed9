import type { ByteString } from './path-bytes';

/** Codes of the entry types. A tombstone says that a path of the parent archive was deleted. */
export const entryTypes = { file: 1, directory: 2, symlink: 3, hardlink: 4, tombstone: 5, fifo: 6 } as const;
export type EntryType = keyof typeof entryTypes;

/** One path of a root. */
export interface Entry {
  type: EntryType;
  path: ByteString;
  /** Permission bits, and for files, directories and FIFOs the set-id and sticky bits. */
  mode: number;
  /** The modification time: seconds since 1970, which may be negative, and the nanoseconds of that second. */
  mtimeSeconds: number;
  mtimeNanoseconds: number;
  /** Bytes of content. It is 0 unless the entry is a file. */
  size: number;
  /** Set for a file, symlink or FIFO that had several names when it was packed. Hard links may refer to it. */
  linked: boolean;
  /** Set for a file with holes, which must take no space after a restore either. */
  sparse: boolean;
  /** SHA-256 of a file's content, otherwise empty. */
  sha256: Buffer;
  /** The target of a symlink, or the path that a hard link shares a file with (in the same root). Otherwise ''. */
  link: ByteString;
  /** Encoded extended attributes and access lists of a file, directory or FIFO. Most have none. */
  attributes: Buffer;
}

const noBytes = Buffer.alloc(0);

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
 * Tells whether a path is unchanged since the parent archive, apart from its attributes. Content counts as equal if
 * size, mode and time (to the nanosecond) are equal.
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
