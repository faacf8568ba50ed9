import type { ArchiveKeys } from '../format/archive-keys';
import { formatBounds } from '../format/archive-limits';
import { type ArchiveSink, blockName, segmentName } from '../format/archive-objects';
import { type Entry, encodeEntry } from '../format/entry';
import { encodeBlock, type SegmentSeal } from '../format/index-block';
import { compressFrame, type ObjectSeal, sealFrames, sealObject } from '../format/sealed-object';

/** The most frames in memory that are being filled or compressed. The thread pool compresses them. */
const buffersMax = 2;
/** The most segments that are sealed and written at the same time. */
const sealingMax = 2;

/**
 * Collects bytes into frames and frames into segments. It compresses and writes in the background and reuses its
 * buffers.
 */
class SegmentWriter {
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
   * Returns the free part of the current frame, at least one byte. Bytes written into the returned Buffer count only
   * after `commit`.
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

  /** Ends the current segment, and returns all segments since the last call. */
  async takeSegments(): Promise<{ first: number; segments: Promise<SegmentSeal>[] }> {
    await this.endSegment();
    const { segments } = this;
    this.segments = [];
    return { first: this.nextSegment - segments.length, segments };
  }

  /** Discards everything since the last `takeSegments`. The segment numbers are used again, with new IVs. */
  async discard(): Promise<void> {
    const { first, segments } = await this.takeSegments();
    await Promise.all(segments);
    this.nextSegment = first;
  }

  /** Waits until nothing is compressed or written any more. It never rejects. */
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

/** Writes contents and entries as segments and index blocks. At most two blocks and two segments are in memory. */
export class BlockWriter {
  /** The seals of the finished blocks, in order. The list is complete after `finish`. */
  readonly blocks: ObjectSeal[] = [];
  sizeBytes = 0;
  private readonly sink: ArchiveSink;
  private readonly keys: ArchiveKeys;
  private readonly segments: SegmentWriter;
  private root = '';
  private entries: Buffer[] = [];
  private entryBytes = 0;
  private rawBytes = 0;
  blockCount = 0;
  /** The lowest format version that has everything that the entries so far use. */
  formatVersion: 2 | 3 | 4 = 2;
  private closing: Promise<void> = Promise.resolve();

  constructor(sink: ArchiveSink, keys: ArchiveKeys) {
    this.sink = sink;
    this.keys = keys;
    this.segments = new SegmentWriter(sink, keys);
  }

  /** Ends the current block. Further blocks belong to the root `name`. Returns the number of the next block. */
  async startRoot(name: string): Promise<number> {
    await this.closeBlock();
    this.root = name;
    return this.blockCount;
  }

  /** The number of segments that have ended. */
  get segmentCount(): number {
    return this.segments.nextSegment;
  }

  /**
   * Returns free memory for content, at least one byte. Bytes written into the returned Buffer count only after
   * `commit`.
   */
  room(): Promise<Buffer> {
    return this.segments.room();
  }

  /** Adds the first `bytes` bytes of `room()` to the content of the next entry. */
  commit(bytes: number): void {
    this.segments.commit(bytes);
    this.rawBytes += bytes;
  }

  /** Appends to the content of the next entry. */
  async append(content: Buffer): Promise<void> {
    for (let at = 0; at < content.length; ) {
      const copied = content.copy(await this.room(), 0, at);
      this.commit(copied);
      at += copied;
    }
  }

  /** Adds the entry of the appended content, and closes a full block. */
  async add(entry: Entry): Promise<void> {
    const bytes = encodeEntry(entry);
    const version = versionFor(entry);
    if (version > this.formatVersion) this.formatVersion = version;
    this.entries.push(bytes);
    this.entryBytes += bytes.length;
    const full =
      this.entries.length >= formatBounds.blockEntries ||
      this.rawBytes >= formatBounds.blockRawBytes ||
      this.entryBytes >= formatBounds.blockIndexRawBytes / 2;
    if (full) await this.closeBlock();
  }

  /**
   * Closes the block unless it has no entry. Content that is appended after this call can be discarded with
   * `discardContent`.
   */
  async closeBlock(): Promise<void> {
    if (this.entries.length === 0) return;
    const { first, segments } = await this.segments.takeSegments();
    const { root, entries, blockCount: number } = this;
    this.blockCount += 1;
    this.entries = [];
    this.entryBytes = 0;
    this.rawBytes = 0;
    await this.closing;
    this.closing = this.writeBlock(number, { root, firstSegment: first }, entries, segments);
    this.closing.catch(() => undefined); // the next await of `closing` throws the error
  }

  /** Discards the content of a block that has no entry yet. */
  async discardContent(): Promise<void> {
    if (this.entries.length > 0) throw new TypeError('content of a block with entries cannot be taken back');
    await this.segments.discard();
    this.rawBytes = 0;
  }

  async finish(): Promise<void> {
    await this.closeBlock();
    await this.closing;
  }

  /** Resolves when nothing is written any more, even after a failure. */
  async settle(): Promise<void> {
    await this.segments.settle();
    await this.closing.catch(() => undefined);
  }

  private async writeBlock(
    number: number,
    head: { root: string; firstSegment: number },
    entries: readonly Buffer[],
    sealing: readonly Promise<SegmentSeal>[],
  ): Promise<void> {
    const segments = await Promise.all(sealing);
    const raw = encodeBlock({ ...head, segments }, entries);
    const { bytes, seal } = await sealObject(this.keys, { kind: 'block', number }, raw);
    await this.sink.write(blockName(number), bytes);
    this.blocks.push(seal);
    this.sizeBytes += segments.reduce((sum, segment) => sum + segment.size, seal.size);
  }
}

/** Limits of version 2. A reader of version 2 refuses everything beyond them as hostile. */
const version2 = { pathBytes: 4000, mode: 0o2777 } as const;
/** Limits of version 3. A reader of version 3 refuses everything beyond them as hostile. */
const version3 = { directoryMode: 0o3777, otherMode: 0o777 } as const;

function versionFor({ type, path, link, mode, linked }: Entry): 2 | 3 | 4 {
  if (type === 'fifo' || (type === 'symlink' && linked)) return 4;
  if ((mode & ~(type === 'directory' ? version3.directoryMode : version3.otherMode)) !== 0) return 4;
  return path.length > version2.pathBytes || link.length > version2.pathBytes || (mode & ~version2.mode) !== 0 ? 3 : 2;
}
