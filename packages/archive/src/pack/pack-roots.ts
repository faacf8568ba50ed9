import { lostParts } from '../files/metadata';

/** A named content of a stream root. Its length need not be known in advance. */
export interface StreamEntry {
  /** A relative path without `..`, as text and not as a byte string. It is unique in its root. */
  path: string;
  content: AsyncIterable<Buffer>;
}

/**
 * The reported reason for a file that changed during every reading. The archive has the content of the last reading,
 * which may mix several moments of the file.
 */
export const changedWhileRead = 'changed while it was read';

/**
 * The reported reason for a link that names a release by its absolute path. A restore creates another release and
 * removes the named one, so the link leads nowhere afterwards.
 */
export const linkIntoRelease =
  'a link to a release by its absolute path, which leads nowhere after a restore: ' +
  'write it relative, or through `current`';

/** Reasons for reporting a path that the archive has, but incompletely, or that does not work after a restore. */
export const partlyKept: ReadonlySet<string> = new Set([
  changedWhileRead,
  linkIntoRelease,
  ...Object.values(lostParts),
]);

/**
 * A path that the archive lacks or holds incompletely, or that will not work after a restore. For the reasons in
 * `partlyKept`, the archive has the path.
 */
export interface SkippedPath {
  path: string;
  reason: string;
}

export type PackRoot =
  | { kind: 'tree'; name: string; directory: string; releases?: string | undefined }
  | { kind: 'stream'; name: string; entries: AsyncIterable<StreamEntry> };

/**
 * Creates a root of everything below a directory. `name` has lower-case letters, digits, `-` and `_`. If the directory
 * is a release, `releases` is the real path of the folder of all releases. Absolute links into that folder are packed
 * and reported.
 */
export function directoryRoot(name: string, directory: string, releases?: string): PackRoot {
  return { kind: 'tree', name, directory, releases };
}

/**
 * Creates a root of named streams, in their order. Each content is read to its end before the next entry is requested.
 */
export function streamRoot(name: string, entries: AsyncIterable<StreamEntry>): PackRoot {
  return { kind: 'stream', name, entries };
}
