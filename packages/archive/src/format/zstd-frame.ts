import { refuse } from './archive-error';

const magic = 0xfd2fb528;
const blockBytesMax = 128 * 1024;
/**
 * Content of 8 MB never needs a larger window, and level 3 uses 2 MB. A larger window is refused, because a decoder
 * allocates it before it reads a byte.
 */
const windowBytesMax = 8 * 2 ** 20;

/** The longest frame for 1 MB of content: zstd's bound for incompressible content, with some room. */
export const frameBytesMax = 2 ** 20 + 16 * 1024;

/**
 * Inserts the content size into a frame's header, because the native encoder omits it. The decoder and `checkFrame`
 * then check the size. @throws TypeError when the header has an unknown form
 */
export function declareContentSize(frame: Buffer, rawBytes: number): Buffer {
  const descriptor = frame.readUInt8(4);
  if (frame.readUInt32LE(0) !== magic || descriptor >> 6 !== 0) throw new TypeError('unexpected zstd frame header');
  const singleSegment = (descriptor & 0x20) !== 0;
  if (singleSegment) {
    if (frame.readUInt8(5) !== rawBytes) throw new TypeError('unexpected zstd content size');
    return frame;
  }
  // With a single segment the window is the content, so a decoder allocates only that instead of the encoder's 2 MB.
  const head = Buffer.alloc(9);
  head.writeUInt32LE(magic, 0);
  head.writeUInt8((descriptor & 0x04) | 0xa0, 4);
  head.writeUInt32LE(rawBytes, 5);
  return Buffer.concat([head, frame.subarray(6)]);
}

/** A checked frame at the start of a byte sequence. */
export interface CheckedFrame {
  /** Length of the frame. */
  bytes: number;
  /** Declared size of the content. */
  rawBytes: number;
}

/**
 * Checks that `bytes` begin with a zstd frame of 1 to `rawBytesMax` bytes of content, without decoding it. It also
 * checks that a decoder cannot produce much more than the declared size.
 * @throws ArchiveError `limit_exceeded`
 */
export function checkFrame(bytes: Buffer, rawBytesMax: number): CheckedFrame {
  const { headerBytes, rawBytes } = readFrameHeader(bytes);
  if (rawBytes < 1n || rawBytes > BigInt(rawBytesMax))
    refuse('limit_exceeded', `zstd frame declares ${rawBytes} bytes`);
  const hasChecksum = (bytes.readUInt8(4) & 0x04) !== 0;
  const { end, producedMax } = walkBlocks(bytes, headerBytes);
  // The bound is loose, because a block may hold less than 128 kB. It only prevents that a frame with a false size
  // fills the memory.
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
