import type { Entry } from '../format/entry';
import { type ByteString, comparePaths } from '../format/path-bytes';
import { mergeTree, type TreeItem } from './merge-tree';
import type { OpenArchive } from './open-archive';

type OnGone = (path: ByteString) => Promise<void>;

/** The tree of one root in a chain, read in step with a walk of the disk. */
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
