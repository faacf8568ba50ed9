import type { ArchiveKeys } from './archive-keys';
import { formatBounds } from './archive-limits';
import { type ArchiveSink, segmentName } from './archive-objects';
import type { SegmentSeal } from './index-block';
import { sealObject } from './sealed-object';

/** One segment is compressed (on the thread pool) and written while the next one fills: a third buffer would only cost memory. */
const buffersMax = 2;

/** Seals and writes segments in the background, at most two at a time, in buffers that are used again. */
export class SealPipeline {
  private readonly sink: ArchiveSink;
  private readonly keys: ArchiveKeys;
  private readonly free: Buffer[] = [];
  private buffers = 0;
  private readonly running = new Set<Promise<SegmentSeal>>();

  constructor(sink: ArchiveSink, keys: ArchiveKeys) {
    this.sink = sink;
    this.keys = keys;
  }

  /** A buffer of a segment's size; waits for one to come back. Rejects when sealing has failed. */
  async buffer(): Promise<Buffer> {
    for (;;) {
      const buffer = this.free.pop();
      if (buffer !== undefined) return buffer;
      if (this.buffers < buffersMax) {
        this.buffers += 1;
        return Buffer.allocUnsafeSlow(formatBounds.segmentRawBytes);
      }
      await Promise.race(this.running);
    }
  }

  /** Starts sealing the first `rawBytes` of a buffer, which is free again when the promise settles. */
  submit(number: number, buffer: Buffer, rawBytes: number): Promise<SegmentSeal> {
    const task = this.sealSegment(number, buffer, rawBytes);
    this.running.add(task);
    const settled = (): void => {
      this.running.delete(task);
      this.free.push(buffer);
    };
    task.then(settled, settled);
    return task;
  }

  /** Waits until nothing runs; never rejects, so that a failed packing can be left without writes behind its back. */
  async settle(): Promise<void> {
    await Promise.allSettled(this.running);
  }

  private async sealSegment(number: number, buffer: Buffer, rawBytes: number): Promise<SegmentSeal> {
    const { bytes, seal } = await sealObject(this.keys, { kind: 'segment', number }, buffer.subarray(0, rawBytes));
    await this.sink.write(segmentName(number), bytes);
    return { ...seal, rawBytes };
  }
}
