import { createHash } from 'node:crypto';
import { refuse } from '../format/archive-error';
import { segmentName } from '../format/archive-objects';
import type { Entry } from '../format/entry';
import type { IndexBlock } from '../format/index-block';
import { releaseMemory } from '../format/release-memory';
import { openFrames } from '../format/sealed-object';
import type { TreeItem } from './merge-tree';
import type { NumberedBlock, OpenArchive } from './open-archive';

/** The fields of an archive that are needed to read its segments. A worker thread has only these fields. */
export type SegmentOrigin = Pick<OpenArchive, 'source' | 'keys'> & {
  /**
   * True if the caller is done with a frame when it requests the next frame. The memory of each frame is then freed at
   * once.
   */
  freesFrames?: boolean;
};

const noBytes = Buffer.alloc(0);

/** Reads the contents of a block's files in order. Each segment is fetched and verified when it is needed. */
export class BlockContent {
  private readonly origin: SegmentOrigin;
  private readonly block: IndexBlock;
  private nextRow = 0;
  private frames: AsyncGenerator<Buffer> | null = null;
  /** The frame after the current frame. The thread pool decodes it while the current frame is used. */
  private ahead: Promise<IteratorResult<Buffer>> | null = null;
  /** The bytes of the current segment that are not decoded yet. */
  private undecoded = 0;
  private current: Buffer = noBytes;
  private at = 0;

  constructor(origin: SegmentOrigin, block: IndexBlock) {
    this.origin = origin;
    this.block = block;
  }

  /**
   * Returns the next `size` bytes if the current frame has all of them, otherwise null. The bytes are valid until the
   * next read.
   */
  takeWhole(size: number): Buffer | null {
    if (this.current.length - this.at < size) return null;
    const whole = this.current.subarray(this.at, this.at + size);
    this.at += size;
    return whole;
  }

  async *read(size: number): AsyncGenerator<Buffer> {
    for (let left = size; left > 0; ) {
      if (this.at === this.current.length) await this.load();
      const piece = this.current.subarray(this.at, this.at + left);
      this.at += piece.length;
      left -= piece.length;
      yield piece;
    }
  }

  /** Skips `size` bytes. A segment that is skipped completely is not fetched. */
  async skip(size: number): Promise<void> {
    let left = size;
    while (left > 0) {
      const here = Math.min(left, this.current.length - this.at);
      this.at += here;
      left -= here;
      const next = this.block.segments[this.nextRow];
      if (left > 0 && this.undecoded === 0 && next !== undefined && next.rawBytes <= left) {
        left -= next.rawBytes;
        this.nextRow += 1;
      } else if (left > 0) {
        await this.load();
      }
    }
  }

  private async load(): Promise<void> {
    this.release();
    this.frames ??= await this.openSegment();
    const frame = await (this.ahead ?? this.frames.next());
    this.ahead = null;
    if (frame.done === true || frame.value.length > this.undecoded)
      refuse('mismatch', 'a segment holds other content than its block records');
    this.current = frame.value;
    this.undecoded -= frame.value.length;
    if (this.undecoded === 0) await this.endSegment(this.frames);
    else this.decodeAhead(this.frames);
  }

  private decodeAhead(frames: AsyncGenerator<Buffer>): void {
    this.ahead = frames.next();
    this.ahead.catch(() => undefined); // a rejection reaches the next load; without a next load it does not matter
  }

  /** Reads to the end of the segment, so that its length is checked and its memory freed. */
  private async endSegment(frames: AsyncGenerator<Buffer>): Promise<void> {
    this.frames = null;
    if ((await frames.next()).done !== true) refuse('mismatch', 'a segment holds more content than its block records');
  }

  /** Frees the current frame, if `freesFrames` allows it. */
  release(): void {
    if (this.origin.freesFrames === true) releaseMemory(this.current);
    this.current = noBytes;
    this.at = 0;
  }

  private async openSegment(): Promise<AsyncGenerator<Buffer>> {
    const seal =
      this.block.segments[this.nextRow] ?? refuse('mismatch', 'files of a block hold more than its segments');
    const number = this.block.firstSegment + this.nextRow;
    this.nextRow += 1;
    this.undecoded = seal.rawBytes;
    const bytes = await this.origin.source.read(segmentName(number));
    return openFrames(this.origin.keys, { kind: 'segment', number }, bytes, seal);
  }
}

/** Reads contents of an archive's files in order, and skips files that are not requested. Only one block is open. */
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
   * Yields the content of the file at `row` of `block`. The SHA-256 is compared after the last piece. The caller must
   * read the content to its end, or stop the iteration, before the next read.
   */
  async *read(block: NumberedBlock, row: number): AsyncGenerator<Buffer> {
    // Concurrent reads would share one position, so each would get bytes of another file.
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
      await content.skip(left); // the next read starts after this file, even if the caller stopped early
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
