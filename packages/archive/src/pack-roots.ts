/** One content of a stream root, of unknown length. */
export interface StreamEntry {
  /** Unique in its root: relative, no `..`, UTF-8. */
  path: string;
  content: AsyncIterable<Buffer>;
}

/** Why a path of a directory is not in the archive. */
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
