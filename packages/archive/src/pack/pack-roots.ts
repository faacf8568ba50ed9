import { lostParts } from '../files/attributes';

/** One content of a stream root, of unknown length. */
export interface StreamEntry {
  /** Unique in its root. Relative, without `..`, in UTF-8. */
  path: string;
  content: AsyncIterable<Buffer>;
}

/** The path is in the archive as it was read last. It was perhaps never like that at one moment. */
export const changedWhileRead = 'changed while it was read';

/** A restore creates a release of its own, and the release that the link names is removed. */
export const linkIntoRelease =
  'a link to a release by its absolute path, which leads nowhere after a restore: ' +
  'write it relative, or through `current`';

/** The reasons for which the path itself is still in the archive. */
export const partlyKept: ReadonlySet<string> = new Set([
  changedWhileRead,
  linkIntoRelease,
  ...Object.values(lostParts),
]);

/**
 * Why a path of a directory is not in the archive, or not completely, or will not work after a restore as it does now
 * (`partlyKept`).
 */
export interface SkippedPath {
  path: string;
  reason: string;
}

export type PackRoot =
  | { kind: 'tree'; name: string; directory: string; releases?: string | undefined }
  | { kind: 'stream'; name: string; entries: AsyncIterable<StreamEntry> };

/**
 * A root made of a directory: everything below it, but not the directory itself. `name` has lower-case letters, digits,
 * `-`, `_`. `releases` is the folder of releases to which the directory belongs, by the real path that was seen by
 * whoever made a link. Absolute links into it are packed, and reported.
 */
export function directoryRoot(name: string, directory: string, releases?: string): PackRoot {
  return { kind: 'tree', name, directory, releases };
}

/**
 * A root made of named streams, in the order in which they come. Each content is read to its end before the next entry
 * is requested.
 */
export function streamRoot(name: string, entries: AsyncIterable<StreamEntry>): PackRoot {
  return { kind: 'stream', name, entries };
}
