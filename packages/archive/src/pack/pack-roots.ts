import { lostParts } from '../files/attributes';

/** One content of a stream root, of unknown length. */
export interface StreamEntry {
  /** Unique in its root: relative, no `..`, UTF-8. */
  path: string;
  content: AsyncIterable<Buffer>;
}

/** The path is in the archive as it was read last, and perhaps never was like that at one moment. */
export const changedWhileRead = 'changed while it was read';

/** Reasons that mean that the path itself is in the archive. */
export const partlyKept: ReadonlySet<string> = new Set([changedWhileRead, ...Object.values(lostParts)]);

/** Why a path of a directory is not in the archive, or not all of it (`partlyKept`). */
export interface SkippedPath {
  path: string;
  reason: string;
}

export type PackRoot =
  | { kind: 'tree'; name: string; directory: string }
  | { kind: 'stream'; name: string; entries: AsyncIterable<StreamEntry> };

/** A root from a directory: everything below it, but not the directory itself. `name`: lower-case letters, digits, `-`, `_`. */
export function directoryRoot(name: string, directory: string): PackRoot {
  return { kind: 'tree', name, directory };
}

/** A root from named streams, kept in the order in which they come. Each content is read to its end before the next entry is asked for. */
export function streamRoot(name: string, entries: AsyncIterable<StreamEntry>): PackRoot {
  return { kind: 'stream', name, entries };
}
