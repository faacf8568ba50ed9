import type { ArchiveKeys } from '../format/archive-keys';
import { formatBounds } from '../format/archive-limits';
import { type ArchiveSink, blockName } from '../format/archive-objects';
import type { Entry } from '../format/entry';
import { encodeEntry } from '../format/entry-codec';
import { type ObjectSeal, sealObject } from '../format/sealed-object';
import { encodeBlock, type SegmentSeal } from './index-block';
import { SegmentWriter } from './segment-writer';

/** Writes contents and entries as segments and index blocks. At most one block and two segments are in memory. */
export class BlockWriter {
  /** The seals of the finished blocks, in order. Complete after `finish`. */
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
  /** The oldest format version whose readers can read the entries written so far. */
  formatVersion: 2 | 3 | 4 = 2;
  private closing: Promise<void> = Promise.resolve();

  constructor(sink: ArchiveSink, keys: ArchiveKeys) {
    this.sink = sink;
    this.keys = keys;
    this.segments = new SegmentWriter(sink, keys);
  }

  /** Blocks that are started from now on belong to this root. */
  async startRoot(name: string): Promise<number> {
    await this.closeBlock();
    this.root = name;
    return this.blockCount;
  }

  /** Segments of the finished blocks. */
  get segmentCount(): number {
    return this.segments.nextSegment;
  }

  /** Free room for content, at least one byte. What is written into it only counts after `commit`. */
  room(): Promise<Buffer> {
    return this.segments.room();
  }

  /** Takes the first `bytes` of the room as content of the next entry. */
  commit(bytes: number): void {
    this.segments.commit(bytes);
    this.rawBytes += bytes;
  }

  /** Appends content of the next entry. */
  async append(content: Buffer): Promise<void> {
    for (let at = 0; at < content.length; ) {
      const copied = content.copy(await this.room(), 0, at);
      this.commit(copied);
      at += copied;
    }
  }

  /** Adds the entry whose content has just been appended, and closes the block when it is full. */
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

  /** Starts a new block unless this one is empty, so that `discardContent` can take back what follows. */
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
    this.closing.catch(() => undefined); // seen by whoever awaits next
  }

  /** Takes back all content of a block that has no entry yet. */
  async discardContent(): Promise<void> {
    if (this.entries.length > 0) throw new TypeError('content of a block with entries cannot be taken back');
    await this.segments.discard();
    this.rawBytes = 0;
  }

  /** Resolves once everything is written. */
  async finish(): Promise<void> {
    await this.closeBlock();
    await this.closing;
  }

  /** Resolves when nothing is written any more, whether writing succeeded or failed. */
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

/** The limits of version 2: its readers refuse anything beyond as hostile. */
const version2 = { pathBytes: 4000, mode: 0o2777 } as const;
/** The limits of version 3: its readers refuse anything beyond as hostile. */
const version3 = { directoryMode: 0o3777, otherMode: 0o777 } as const;

/** The oldest format version whose readers can read an entry. */
function versionFor({ type, path, link, mode, linked }: Entry): 2 | 3 | 4 {
  if (type === 'fifo' || (type === 'symlink' && linked)) return 4;
  if ((mode & ~(type === 'directory' ? version3.directoryMode : version3.otherMode)) !== 0) return 4;
  return path.length > version2.pathBytes || link.length > version2.pathBytes || (mode & ~version2.mode) !== 0 ? 3 : 2;
}
