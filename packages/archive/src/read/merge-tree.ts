import { refuse } from '../format/archive-error';
import type { Entry } from '../format/entry';
import { type ByteString, comparePaths } from '../format/path-bytes';
import { type NumberedBlock, type OpenArchive, readBlocks } from './open-archive';

/** The newest version of a path in a chain, with its position. */
export interface TreeItem {
  entry: Entry;
  /** Index of the archive in the chain. */
  archive: number;
  block: NumberedBlock;
  /** Index of the entry in its block. */
  row: number;
}

/**
 * Yields the tree that a chain describes: the newest version of each path in path order, without deleted paths. The
 * sorted indexes of the archives are merged as streams, with the current and the next block of each archive in memory.
 */
export async function* mergeTree(
  archives: readonly OpenArchive[],
  root: string,
  signal?: AbortSignal,
): AsyncGenerator<TreeItem[]> {
  const cursors = archives.map((archive, at) => new Cursor(at, readBlocks(archive, root, signal)));
  for (;;) {
    for (const cursor of cursors) if (cursor.isEmpty()) await cursor.load();
    const batch = takeBatch(cursors);
    if (batch.length > 0) yield batch;
    if (cursors.every((cursor) => cursor.isDone())) return;
  }
}

/** Takes items until a cursor needs its next block. */
function takeBatch(cursors: readonly Cursor[]): TreeItem[] {
  const batch: TreeItem[] = [];
  while (cursors.every((cursor) => !cursor.isEmpty() || cursor.isDone())) {
    const newest = takeNewest(cursors);
    if (newest === null) break;
    if (newest.entry.type !== 'tombstone') batch.push(newest);
  }
  return batch;
}

function takeNewest(cursors: readonly Cursor[]): TreeItem | null {
  let newest: TreeItem | null = null;
  let holders: Cursor[] = [];
  for (const cursor of cursors) {
    const item = cursor.peek();
    if (item === null) continue;
    const order = newest === null ? -1 : comparePaths(item.entry.path, newest.entry.path);
    if (order > 0) continue;
    holders = order < 0 ? [cursor] : [...holders, cursor];
    newest = item; // later archives come last, so they have the newer version of an equal path
  }
  for (const holder of holders) holder.advance();
  return newest;
}

class Cursor {
  private readonly archive: number;
  private readonly blocks: AsyncGenerator<NumberedBlock>;
  private block: NumberedBlock | null = null;
  private row = 0;
  private done = false;

  constructor(archive: number, blocks: AsyncGenerator<NumberedBlock>) {
    this.archive = archive;
    this.blocks = blocks;
  }

  /** Tells whether a block must be loaded before the next item. */
  isEmpty(): boolean {
    return this.block === null || this.row >= this.block.block.entries.length;
  }

  isDone(): boolean {
    return this.done;
  }

  async load(): Promise<void> {
    while (!this.done && this.isEmpty()) {
      const next = await this.blocks.next();
      this.done = next.done === true;
      this.block = next.done === true ? null : next.value;
      this.row = 0;
    }
  }

  peek(): TreeItem | null {
    if (this.block === null || this.isEmpty()) return null;
    const entry = this.block.block.entries[this.row] ?? refuse('mismatch', 'block with a hole');
    return { entry, archive: this.archive, block: this.block, row: this.row };
  }

  advance(): void {
    this.row += 1;
  }
}

type OnGone = (path: ByteString) => Promise<void>;

/**
 * The tree of one root, as the parent chain has recorded it. The packer reads this tree while it walks the disk, both
 * in path order.
 */
export class ParentTree {
  private readonly batches: AsyncGenerator<TreeItem[]>;
  private batch: TreeItem[] = [];
  private row = 0;
  private done = false;

  constructor(archives: readonly OpenArchive[], root: string, signal?: AbortSignal) {
    this.batches = mergeTree(archives, root, signal);
  }

  /** Calls `onGone` for every recorded path before `path`. Returns the entry of `path`, or null if it is new. */
  async takeUpTo(path: ByteString, onGone: OnGone): Promise<Entry | null> {
    for (;;) {
      const recorded = this.peek() ?? (await this.load());
      if (recorded === null) return null;
      const order = comparePaths(recorded.path, path);
      if (order > 0) return null;
      this.row += 1;
      if (order === 0) return recorded;
      await onGone(recorded.path);
    }
  }

  /** Calls `onGone` for every remaining path. */
  async takeRest(onGone: OnGone): Promise<void> {
    for (
      let recorded = this.peek() ?? (await this.load());
      recorded !== null;
      recorded = this.peek() ?? (await this.load())
    ) {
      this.row += 1;
      await onGone(recorded.path);
    }
  }

  private peek(): Entry | null {
    return this.batch[this.row]?.entry ?? null;
  }

  private async load(): Promise<Entry | null> {
    if (this.done) return null;
    const next = await this.batches.next();
    this.done = next.done === true;
    this.batch = next.done === true ? [] : next.value;
    this.row = 0;
    return this.peek();
  }
}
