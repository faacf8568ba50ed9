import { refuse } from './archive-error';
import { segmentName } from './archive-objects';
import type { IndexBlock } from './index-block';
import type { OpenArchive } from './open-archive';
import { openFrames } from './sealed-object';

/** What reading segments needs of an archive; a worker has no more than this. */
export type SegmentOrigin = Pick<OpenArchive, 'source' | 'keys'> & {
  /** Called when a frame has been let go of and the next one is about to be decoded. */
  onFrame?: () => void;
};

const noBytes = Buffer.alloc(0);

/** The contents of one block's files, read in order. Each segment is fetched and verified right before it is decoded. */
export class BlockContent {
  private readonly origin: SegmentOrigin;
  private readonly block: IndexBlock;
  private nextRow = 0;
  private frames: AsyncGenerator<Buffer> | null = null;
  /** Content bytes of the opened segment that have not been decoded yet. */
  private undecoded = 0;
  private current: Buffer = noBytes;
  private at = 0;

  constructor(origin: SegmentOrigin, block: IndexBlock) {
    this.origin = origin;
    this.block = block;
  }

  /** The next `size` bytes if they lie in the frame already decoded, else null. The bytes are valid until the next read. */
  takeWhole(size: number): Buffer | null {
    if (this.current.length - this.at < size) return null;
    const whole = this.current.subarray(this.at, this.at + size);
    this.at += size;
    return whole;
  }

  /** The next `size` bytes, in pieces. */
  async *read(size: number): AsyncGenerator<Buffer> {
    for (let left = size; left > 0; ) {
      if (this.at === this.current.length) await this.load();
      const piece = this.current.subarray(this.at, this.at + left);
      this.at += piece.length;
      left -= piece.length;
      yield piece;
    }
  }

  /** Passes over `size` bytes; segments that lie in them wholly are not even fetched. */
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
    this.current = noBytes; // lets go of the last frame before the next one needs its memory
    this.at = 0;
    this.origin.onFrame?.();
    this.frames ??= await this.openSegment();
    const frame = await this.frames.next();
    if (frame.done !== true) {
      this.current = frame.value;
      this.undecoded -= frame.value.length;
    }
    if (this.undecoded === 0) this.frames = null;
  }

  private async openSegment(): Promise<AsyncGenerator<Buffer>> {
    const seal = this.block.segments[this.nextRow] ?? refuse('mismatch', 'files of a block hold more than its segments');
    const number = this.block.firstSegment + this.nextRow;
    this.nextRow += 1;
    this.undecoded = seal.rawBytes;
    const bytes = await this.origin.source.read(segmentName(number));
    return openFrames(this.origin.keys, { kind: 'segment', number }, bytes, seal);
  }
}
