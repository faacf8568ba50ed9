import { refuse } from './archive-error';

const magic = 0xfd2fb528;
const blockBytesMax = 128 * 1024;
/**
 * Level 3 uses 2 MB. 8 MB of content never needs more than this, and a decoder would allocate a larger window before it
 * reads a byte.
 */
const windowBytesMax = 8 * 2 ** 20;

/**
 * The longest frame for 1 MB of content: zstd's bound for content that cannot be compressed, with some room. Our writer
 * never makes a longer one.
 */
export const frameBytesMax = 2 ** 20 + 16 * 1024;

/**
 * The native encoder writes frames without a content size. This inserts it, so that the decoder checks it and
 * `checkFrame` can see it. @throws TypeError when the encoder's frame header has an unknown form.
 */
export function declareContentSize(frame: Buffer, rawBytes: number): Buffer {
  const descriptor = frame.readUInt8(4);
  if (frame.readUInt32LE(0) !== magic || descriptor >> 6 !== 0) throw new TypeError('unexpected zstd frame header');
  const singleSegment = (descriptor & 0x20) !== 0;
  if (singleSegment) {
    if (frame.readUInt8(5) !== rawBytes) throw new TypeError('unexpected zstd content size');
    return frame;
  }
  // In a single segment the window is the content itself. So a decoder allocates that much, and not the encoder's 2 MB.
  const head = Buffer.alloc(9);
  head.writeUInt32LE(magic, 0);
  head.writeUInt8((descriptor & 0x04) | 0xa0, 4);
  head.writeUInt32LE(rawBytes, 5);
  return Buffer.concat([head, frame.subarray(6)]);
}

/** A frame at the start of some bytes. */
export interface CheckedFrame {
  /** Length of the frame itself. */
  bytes: number;
  /** Content that it declares. */
  rawBytes: number;
}

/**
 * Checks, without decoding, that `bytes` begin with a zstd frame which declares between 1 and `rawBytesMax` bytes of
 * content and cannot make a decoder produce much more than that, whatever it declares.
 * @throws ArchiveError `limit_exceeded`
 */
export function checkFrame(bytes: Buffer, rawBytesMax: number): CheckedFrame {
  const { headerBytes, rawBytes } = readFrameHeader(bytes);
  if (rawBytes < 1n || rawBytes > BigInt(rawBytesMax))
    refuse('limit_exceeded', `zstd frame declares ${rawBytes} bytes`);
  const hasChecksum = (bytes.readUInt8(4) & 0x04) !== 0;
  const { end, producedMax } = walkBlocks(bytes, headerBytes);
  // A block may hold less than 128 kB, so the bound is loose. It only has to keep a frame with a false size from
  // filling the memory.
  if (producedMax > 4 * Number(rawBytes) + 8 * blockBytesMax)
    refuse('limit_exceeded', 'zstd frame could produce more than it declares');
  const frameBytes = end + (hasChecksum ? 4 : 0);
  if (frameBytes > bytes.length) refuse('mismatch', 'zstd frame cut short');
  return { bytes: frameBytes, rawBytes: Number(rawBytes) };
}

function readFrameHeader(bytes: Buffer): { headerBytes: number; rawBytes: bigint } {
  if (bytes.length < 9 || bytes.readUInt32LE(0) !== magic) refuse('mismatch', 'not a zstd frame');
  const descriptor = bytes.readUInt8(4);
  const sizeFlag = descriptor >> 6;
  const singleSegment = (descriptor & 0x20) !== 0;
  if ((descriptor & 0x0b) !== 0) refuse('mismatch', 'zstd frame with a dictionary or reserved bits');
  let at = 5;
  if (!singleSegment) {
    const window = bytes.readUInt8(at);
    const base = 2 ** (10 + (window >> 3));
    if (base + (base / 8) * (window & 7) > windowBytesMax) refuse('limit_exceeded', 'zstd window too large');
    at += 1;
  }
  if (sizeFlag === 0 && !singleSegment) refuse('mismatch', 'zstd frame without a content size');
  const sizeBytes = [1, 2, 4, 8][sizeFlag] ?? 8;
  if (bytes.length < at + sizeBytes) refuse('mismatch', 'zstd frame header cut short');
  return { headerBytes: at + sizeBytes, rawBytes: readContentSize(bytes, at, sizeBytes) };
}

function readContentSize(bytes: Buffer, at: number, sizeBytes: number): bigint {
  if (sizeBytes === 8) return bytes.readBigUInt64LE(at);
  return BigInt(bytes.readUIntLE(at, sizeBytes) + (sizeBytes === 2 ? 256 : 0));
}

function walkBlocks(bytes: Buffer, start: number): { end: number; producedMax: number } {
  let at = start;
  let producedMax = 0;
  for (;;) {
    if (at + 3 > bytes.length) refuse('mismatch', 'zstd block cut short');
    const header = bytes.readUIntLE(at, 3);
    const type = (header >> 1) & 3;
    const size = header >> 3;
    if (type === 3 || size > blockBytesMax) refuse('mismatch', 'zstd block of an impossible kind or size');
    producedMax += type === 2 ? blockBytesMax : size;
    at += 3 + (type === 1 ? 1 : size);
    if ((header & 1) === 1) return { end: at, producedMax };
  }
}
