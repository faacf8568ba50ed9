import type { ArchiveKeys } from '../format/archive-keys';
import { formatBounds } from '../format/archive-limits';
import { type ArchiveSink, segmentName } from '../format/archive-objects';
import { compressFrame, sealFrames } from '../format/sealed-object';
import type { SegmentSeal } from './index-block';

/** Frames being filled or compressed (on the thread pool). */
const buffersMax = 2;
/** Segments whose frames are compressed, but which are not yet written. */
const sealingMax = 2;

/** Turns bytes into frames and frames into segments, in the background, with buffers that are used again and again. */
export class SegmentWriter {
  /** Number of the next segment. */
  nextSegment = 0;
  private readonly sink: ArchiveSink;
  private readonly keys: ArchiveKeys;
  private readonly free: Buffer[] = [];
  private buffers = 0;
  private buffer: Buffer | null = null;
  private filled = 0;
  private frames: Promise<Buffer>[] = [];
  private rawBytes = 0;
  private segments: Promise<SegmentSeal>[] = [];
  private readonly compressing = new Set<Promise<unknown>>();
  private readonly sealing = new Set<Promise<unknown>>();

  constructor(sink: ArchiveSink, keys: ArchiveKeys) {
    this.sink = sink;
    this.keys = keys;
  }

  /**
   * Free room in the frame that is being filled, at least one byte. What is written into it only counts after `commit`.
   */
  async room(): Promise<Buffer> {
    if (this.filled === formatBounds.frameRawBytes) this.endFrame();
    if (this.rawBytes === formatBounds.segmentRawBytes) await this.endSegment();
    this.buffer ??= await this.takeBuffer();
    return this.buffer.subarray(this.filled);
  }

  commit(bytes: number): void {
    this.filled += bytes;
    this.rawBytes += bytes;
  }

  /** Ends the segment that is being filled, and returns all segments since the last call. */
  async takeSegments(): Promise<{ first: number; segments: Promise<SegmentSeal>[] }> {
    await this.endSegment();
    const { segments } = this;
    this.segments = [];
    return { first: this.nextSegment - segments.length, segments };
  }

  /** Takes back everything since `takeSegments`. The numbers are used again, with new IVs. */
  async discard(): Promise<void> {
    const { first, segments } = await this.takeSegments();
    await Promise.all(segments);
    this.nextSegment = first;
  }

  /** Waits until nothing runs. Never rejects. After it, a failed packing writes nothing any more. */
  async settle(): Promise<void> {
    await Promise.allSettled([...this.compressing, ...this.sealing]);
  }

  private async takeBuffer(): Promise<Buffer> {
    for (;;) {
      const buffer = this.free.pop();
      if (buffer !== undefined) return buffer;
      if (this.buffers < buffersMax) {
        this.buffers += 1;
        return Buffer.allocUnsafeSlow(formatBounds.frameRawBytes);
      }
      await Promise.race(this.compressing);
    }
  }

  private endFrame(): void {
    const { buffer, filled } = this;
    if (buffer === null || filled === 0) return;
    this.buffer = null;
    this.filled = 0;
    const frame = compressFrame(buffer.subarray(0, filled));
    this.frames.push(frame);
    track(this.compressing, frame, () => this.free.push(buffer));
  }

  private async endSegment(): Promise<void> {
    this.endFrame();
    if (this.rawBytes === 0) return;
    const segment = this.sealSegment(this.nextSegment, this.frames, this.rawBytes);
    this.segments.push(segment);
    this.nextSegment += 1;
    this.frames = [];
    this.rawBytes = 0;
    track(this.sealing, segment, () => undefined);
    while (this.sealing.size >= sealingMax) await Promise.race(this.sealing);
  }

  private async sealSegment(
    number: number,
    frames: readonly Promise<Buffer>[],
    rawBytes: number,
  ): Promise<SegmentSeal> {
    const { bytes, seal } = sealFrames(this.keys, { kind: 'segment', number }, await Promise.all(frames), rawBytes);
    await this.sink.write(segmentName(number), bytes);
    return { ...seal, rawBytes };
  }
}

function track(running: Set<Promise<unknown>>, task: Promise<unknown>, settled: () => void): void {
  running.add(task);
  const remove = (): void => {
    running.delete(task);
    settled();
  };
  task.then(remove, remove);
}
