import { refuse } from '../format/archive-error';
import type { ArchiveKey } from '../format/archive-keys';
import { type ArchiveLimits, completeLimits } from '../format/archive-limits';
import { checkPath } from '../format/entry';
import { textOfBytes } from '../format/path-bytes';
import { type ArchiveLink, findRoot, type OpenArchive, openChain, readBlocks } from './open-archive';
import { ContentReader } from './read-contents';
import { checkStreams } from './verify-archive';

export interface OpenedEntry {
  path: string;
  size: number;
  /**
   * Returns the content. The content can be read only once, and only before the next entry is requested. The SHA-256 is
   * compared at the end of the stream, so the caller must not rely on the content before its end.
   */
  content(): AsyncIterable<Buffer>;
}

export interface OpenEntriesOptions {
  chain: readonly ArchiveLink[];
  key: ArchiveKey;
  /** The name of a stream root. */
  root: string;
  limits?: Partial<ArchiveLimits>;
  signal?: AbortSignal;
}

/**
 * Yields the streams of a root from the newest archive of a chain, in their order. Nothing is written to disk. The
 * root's index is checked before the first stream. @throws ArchiveError while iterating
 */
export async function* openEntries(options: OpenEntriesOptions): AsyncGenerator<OpenedEntry> {
  const limits = completeLimits(options.limits);
  const archives = await openChain(options.chain, options.key, limits);
  const archive = archives.at(-1) ?? refuse('chain_gap', 'a chain without archives');
  if (findRoot(archive, options.root).kind !== 'stream')
    refuse('unknown_root', `${options.root} is no root of streams`);
  await checkRoot(archive, options.root, limits);
  const contents = new ContentReader(archive);
  for await (const block of readBlocks(archive, options.root, options.signal)) {
    for (const [row, entry] of block.block.entries.entries()) {
      yield { path: textOfBytes(entry.path), size: entry.size, content: () => contents.read(block, row) };
    }
  }
}

async function checkRoot(archive: OpenArchive, root: string, limits: ArchiveLimits): Promise<void> {
  const seen = new Set<string>();
  for await (const numbered of readBlocks(archive, root)) {
    checkStreams(seen, numbered);
    for (const entry of numbered.block.entries) checkPath(entry.path, limits.depthMax);
  }
}

/** An entry, whose content can be read once. */
export interface EntryInTurn {
  path: string;
  content: AsyncIterable<Buffer>;
}

/**
 * Gives entries to a reader that may request the next entry before it has read the current one. An archive is read in
 * order, so a request for the next entry waits until the reader has finished the current one. `return` ends the
 * iteration at once, even while the reader waits for an entry.
 */
export function entriesInTurn(
  entries: AsyncGenerator<Pick<OpenedEntry, 'path' | 'content'>>,
): AsyncIterable<EntryInTurn> {
  let read: Promise<void> = Promise.resolve();
  let isClosed = false;
  let giveUp: () => void = () => {};
  const closed = new Promise<void>((resolve) => {
    giveUp = resolve;
  });
  const end = { done: true, value: undefined } as const;
  const next = async (): Promise<IteratorResult<EntryInTurn>> => {
    await Promise.race([read, closed]);
    const result = isClosed ? end : await entries.next();
    if (result.done === true) return end;
    const { path, content } = result.value;
    let finish: () => void = () => {};
    read = new Promise<void>((resolve) => {
      finish = resolve;
    });
    return { done: false, value: { path, content: untilRead(content(), finish) } };
  };
  const close = async (): Promise<IteratorResult<EntryInTurn>> => {
    isClosed = true;
    giveUp();
    await entries.return(undefined);
    return end;
  };
  return { [Symbol.asyncIterator]: () => ({ next, return: close }) };
}

async function* untilRead(content: AsyncIterable<Buffer>, finish: () => void): AsyncGenerator<Buffer> {
  try {
    yield* content;
  } finally {
    finish();
  }
}
