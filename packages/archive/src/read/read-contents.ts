import { createHash } from 'node:crypto';
import { refuse } from '../format/archive-error';
import type { Entry } from '../format/entry';
import { BlockContent } from './block-content';
import type { TreeItem } from './merge-tree';
import type { OpenArchive } from './open-archive';
import type { NumberedBlock } from './read-blocks';

/** Reads contents of files in order and skips the rest. Only the current block is open. */
export class ContentReader {
  private readonly archive: OpenArchive;
  private block: NumberedBlock | null = null;
  private content: BlockContent | null = null;
  private row = 0;
  private isReading = false;

  constructor(archive: OpenArchive) {
    this.archive = archive;
  }

  /**
   * Yields the content of the file at `row` of `block`. Its SHA-256 is compared after the last piece. Each content must
   * be read before the next.
   */
  async *read(block: NumberedBlock, row: number): AsyncGenerator<Buffer> {
    // Concurrent reads would share one position, and each would get bytes of the other.
    if (this.isReading) throw new TypeError('contents are read one at a time');
    this.isReading = true;
    const content = await this.moveTo(block, row);
    const entry = entryAt(block, row);
    const digest = createHash('sha256');
    this.row = row + 1;
    let left = entry.size;
    try {
      for await (const piece of content.read(entry.size)) {
        left -= piece.length;
        digest.update(piece);
        yield piece;
      }
    } finally {
      await content.skip(left); // the next read needs the position after this file, also if this one stopped early
      this.isReading = false;
    }
    if (!digest.digest().equals(entry.sha256))
      refuse('mismatch', `content of ${entry.path} has another SHA-256 than recorded`);
  }

  private async moveTo(block: NumberedBlock, row: number): Promise<BlockContent> {
    if (this.block?.number !== block.number || this.content === null) {
      this.block = block;
      this.content = new BlockContent(this.archive, block.block);
      this.row = 0;
    }
    if (row < this.row) throw new TypeError('contents are read in order');
    let skipped = 0;
    for (; this.row < row; this.row += 1) skipped += entryAt(block, this.row).size;
    await this.content.skip(skipped);
    return this.content;
  }
}

/** Reads contents of a merged tree. Each content comes from the archive that holds it. */
export class TreeContents {
  private readonly readers: ContentReader[];

  constructor(archives: readonly OpenArchive[]) {
    this.readers = archives.map((archive) => new ContentReader(archive));
  }

  read(item: TreeItem): AsyncGenerator<Buffer> {
    const reader = this.readers[item.archive] ?? refuse('mismatch', 'entry of an unknown archive');
    return reader.read(item.block, item.row);
  }
}

function entryAt(block: NumberedBlock, row: number): Entry {
  return block.block.entries[row] ?? refuse('mismatch', 'block with a hole');
}
