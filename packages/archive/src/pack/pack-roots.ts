import { lostParts } from '../files/attributes';

/** One content of a stream root, of unknown length. */
export interface StreamEntry {
  /** Unique in its root: relative, no `..`, UTF-8. */
  path: string;
  content: AsyncIterable<Buffer>;
}

/** The path is in the archive as it was read last, and perhaps never was like that at one moment. */
export const changedWhileRead = 'changed while it was read';

/** A restore makes a release of its own, and the one that the link names goes. */
export const linkIntoRelease =
  'a link to a release by its absolute path, which leads nowhere after a restore: write it relative, or through `current`';

/** Reasons that mean that the path itself is in the archive. */
export const partlyKept: ReadonlySet<string> = new Set([changedWhileRead, linkIntoRelease, ...Object.values(lostParts)]);

/** Why a path of a directory is not in the archive, or not all of it, or will not do after a restore what it does now (`partlyKept`). */
export interface SkippedPath {
  path: string;
  reason: string;
}

export type PackRoot =
  | { kind: 'tree'; name: string; directory: string; releases?: string | undefined }
  | { kind: 'stream'; name: string; entries: AsyncIterable<StreamEntry> };

/**
 * A root from a directory: everything below it, but not the directory itself. `name`: lower-case letters, digits, `-`, `_`. `releases`: the folder of releases of which
 * the directory is one, by the real path that whoever made a link saw; absolute links into it are packed and told of.
 */
export function directoryRoot(name: string, directory: string, releases?: string): PackRoot {
  return { kind: 'tree', name, directory, releases };
}

/** A root from named streams, kept in the order in which they come. Each content is read to its end before the next entry is asked for. */
export function streamRoot(name: string, entries: AsyncIterable<StreamEntry>): PackRoot {
  return { kind: 'stream', name, entries };
}
