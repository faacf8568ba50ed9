import { refuse } from './archive-error';
import { formatBounds } from './archive-limits';
import { decodeEntry, type Entry } from './entry';
import { comparePaths } from './path-bytes';
import { macBytes, type ObjectSeal } from './sealed-object';

/** A segment's record in its block. */
export interface SegmentSeal extends ObjectSeal {
  rawBytes: number;
}

/**
 * A run of entries of one root, with the segments of their contents. The joined contents of the files equal the joined
 * contents of the segments. So each block can be extracted alone.
 */
export interface IndexBlock {
  root: string;
  firstSegment: number;
  segments: SegmentSeal[];
  entries: Entry[];
  /**
   * The decoded block, whose memory holds the entries' hashes. The reader releases this memory once it no longer needs
   * the block.
   */
  raw: Buffer;
}

const segmentRowBytes = 8 + macBytes;

/**
 * Encodes a block before it is sealed. The caller passes entries that are already encoded, because encoding all of them
 * here would hold the block in memory twice.
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
 * Decodes a block. Checks its form, its counts, and that files and segments have the same number of bytes. Paths of a
 * tree must also strictly ascend. @throws ArchiveError `mismatch`, `hostile_entry` or `limit_exceeded`
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
 * Checks that `path` comes after `previous`, because a repeated path could overwrite an earlier entry. @throws
 * ArchiveError `hostile_entry`
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
