import type { ArchiveKey } from '../src/format/archive-keys';
import { type ArchiveLimits, completeLimits } from '../src/format/archive-limits';
import type { EntryType } from '../src/format/entry';
import { textOfBytes } from '../src/format/path-bytes';
import { mergeTree } from '../src/read/merge-tree';
import { type ArchiveLink, openChain } from '../src/read/open-archive';

export interface ListedEntry {
  type: Exclude<EntryType, 'tombstone'>;
  path: string;
  size: number;
  mode: number;
  mtimeSeconds: number;
  mtimeNanoseconds: number;
  /** In hex, for files only. */
  sha256: string;
  /** The target of a symlink or hard link, otherwise ''. */
  link: string;
}

export interface ReadIndexOptions {
  chain: readonly ArchiveLink[];
  key: ArchiveKey;
  root: string;
  limits?: Partial<ArchiveLimits>;
  signal?: AbortSignal;
}

/**
 * Yields the entries below one tree root of a chain of archives, in path order and in bounded memory. @throws
 * ArchiveError while iterating
 */
export async function* readIndex(options: ReadIndexOptions): AsyncGenerator<ListedEntry> {
  const archives = await openChain(options.chain, options.key, completeLimits(options.limits));
  for await (const batch of mergeTree(archives, options.root, options.signal)) {
    for (const { entry } of batch) {
      const { type, size, mode, mtimeSeconds, mtimeNanoseconds } = entry;
      if (type === 'tombstone') continue;
      const names = {
        path: textOfBytes(entry.path),
        link: textOfBytes(entry.link),
        sha256: entry.sha256.toString('hex'),
      };
      yield { type, size, mode, mtimeSeconds, mtimeNanoseconds, ...names };
    }
  }
}
