import { refuse } from './archive-error';
import { formatBounds } from './archive-limits';
import { decodeEntry, type Entry } from './entry';
import { comparePaths } from './path-bytes';
import { macBytes, type ObjectSeal } from './sealed-object';

/** A segment as its block records it. */
export interface SegmentSeal extends ObjectSeal {
  rawBytes: number;
}

/**
 * A run of entries of one root, with the segments that hold the bytes of their files. The contents of the block's
 * files, joined in the order of its entries, are exactly the contents of its segments. So a block can be extracted
 * without any other block.
 */
export interface IndexBlock {
  root: string;
  firstSegment: number;
  segments: SegmentSeal[];
  entries: Entry[];
  /** Memory of the entries' hashes. To be released when the block has been used. */
  raw: Buffer;
}

const segmentRowBytes = 8 + macBytes;

/**
 * The bytes of a block before sealing. `entries` are already encoded, so that a block under construction is in memory
 * only once.
 */
export function encodeBlock(block: Omit<IndexBlock, 'entries' | 'raw'>, entries: readonly Buffer[]): Buffer {
  const root = Buffer.from(block.root, 'utf8');
  const head = Buffer.alloc(1 + root.length + 12);
  head.writeUInt8(root.length, 0);
  root.copy(head, 1);
  head.writeUInt32BE(block.firstSegment, 1 + root.length);
  head.writeUInt32BE(block.segments.length, 5 + root.length);
  head.writeUInt32BE(entries.length, 9 + root.length);
  const bytes = Buffer.concat([head, ...block.segments.map(encodeSegmentRow), ...entries]);
  if (bytes.length > formatBounds.blockIndexRawBytes)
    refuse('limit_exceeded', 'a file needs more segments than one block can list');
  return bytes;
}

/**
 * Reads a block and checks everything that can be checked in it alone: its form, its counts, and that its files and
 * segments hold the same number of bytes. In a tree its paths must also strictly ascend. @throws ArchiveError
 * `mismatch` or `hostile_entry`
 */
export function decodeBlock(bytes: Buffer, kind: 'tree' | 'stream'): IndexBlock {
  const rootBytes = bytes.length > 0 ? bytes.readUInt8(0) : 0;
  if (bytes.length < 13 + rootBytes) refuse('mismatch', 'index block cut short');
  const root = bytes.toString('utf8', 1, 1 + rootBytes);
  const firstSegment = bytes.readUInt32BE(1 + rootBytes);
  const segmentCount = bytes.readUInt32BE(5 + rootBytes);
  const entryCount = bytes.readUInt32BE(9 + rootBytes);
  let at = 13 + rootBytes;
  if (at + segmentCount * segmentRowBytes > bytes.length || entryCount > formatBounds.blockEntries)
    refuse('mismatch', 'index block cut short');
  const segments: SegmentSeal[] = [];
  for (let row = 0; row < segmentCount; row += 1, at += segmentRowBytes) segments.push(decodeSegmentRow(bytes, at));
  const entries: Entry[] = [];
  for (let row = 0; row < entryCount; row += 1) {
    const { entry, next } = decodeEntry(bytes, at);
    entries.push(entry);
    at = next;
  }
  if (at !== bytes.length) refuse('mismatch', 'index block with bytes after its last entry');
  checkBytes(entries, segments);
  if (kind === 'tree') checkOrder(entries);
  return { root, firstSegment, segments, entries, raw: bytes };
}

/**
 * @throws ArchiveError `hostile_entry` unless `path` comes after `previous`: a path twice, or out of order, could
 * overwrite another
 */
export function checkAscending(previous: string, path: string): void {
  if (comparePaths(previous, path) >= 0) refuse('hostile_entry', `path out of order or twice: ${path}`);
}

function checkOrder(entries: readonly Entry[]): void {
  let previous = '';
  for (const { path } of entries) {
    checkAscending(previous, path);
    previous = path;
  }
}

function checkBytes(entries: readonly Entry[], segments: readonly SegmentSeal[]): void {
  const ofFiles = entries.reduce((sum, entry) => sum + entry.size, 0);
  const ofSegments = segments.reduce((sum, segment) => sum + segment.rawBytes, 0);
  if (ofFiles !== ofSegments)
    refuse('mismatch', `files of a block declare ${ofFiles} bytes, its segments ${ofSegments}`);
}

function encodeSegmentRow(segment: SegmentSeal): Buffer {
  const row = Buffer.alloc(segmentRowBytes);
  row.writeUInt32BE(segment.size, 0);
  row.writeUInt32BE(segment.rawBytes, 4);
  segment.mac.copy(row, 8);
  return row;
}

function decodeSegmentRow(bytes: Buffer, at: number): SegmentSeal {
  const rawBytes = bytes.readUInt32BE(at + 4);
  if (rawBytes === 0 || rawBytes > formatBounds.segmentRawBytes)
    refuse('limit_exceeded', `segment declares ${rawBytes} bytes`);
  return { size: bytes.readUInt32BE(at), rawBytes, mac: Buffer.from(bytes.subarray(at + 8, at + segmentRowBytes)) };
}
