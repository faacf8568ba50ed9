import { refuse } from './archive-error';
import { formatBounds } from './archive-limits';
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

/**
 * Says why a path may not be created below a directory, or null when it may. The writer checks the paths that it finds,
 * and the reader checks the paths that an archive tells it to create.
 */
export function pathProblem(path: ByteString, depthMax: number): string | null {
  if (path.length === 0) return 'empty path';
  if (path.length > formatBounds.pathBytes) return 'path too long';
  if (path.includes('\0')) return 'NUL in a path';
  if (path.startsWith('/')) return 'absolute path';
  const names = path.split('/');
  if (names.length > depthMax) return `more than ${depthMax} directories deep`;
  for (const name of names) {
    if (name === '' || name === '.' || name === '..') return 'empty, . or .. in a path';
    if (name.length > formatBounds.nameBytes) return 'name over 255 bytes';
  }
  return null;
}

/**
 * Says why a symlink's target is refused, or null when it is allowed. The owner decides where a link leads. A link is
 * packed and restored as a link, and nothing is reached through one: no entry is below a link, links are created last,
 * and the server of a tree follows none that leaves it.
 */
export function symlinkProblem(target: ByteString): string | null {
  if (target.length === 0 || target.length > formatBounds.targetBytes) return 'link target empty or too long';
  return target.includes('\0') ? 'NUL in a link target' : null;
}

/**
 * The mode bits that are kept. Set-id bits give whoever runs a file the rights of its owner. After a restore the owner
 * is the account that the file was restored for, so this is no more than that account could give itself.
 */
export const keptModes: Readonly<Record<EntryType, number>> = {
  file: 0o7777,
  directory: 0o7777,
  fifo: 0o7777,
  symlink: 0o777,
  hardlink: 0o777,
  tombstone: 0o777,
};

/** @throws ArchiveError `hostile_entry` */
export function checkPath(path: ByteString, depthMax: number): void {
  const problem = pathProblem(path, depthMax);
  if (problem !== null) refuse('hostile_entry', `${problem}: ${path.slice(0, 200)}`);
}
