import { createCipheriv, createDecipheriv, createHmac, type Decipher, randomBytes, timingSafeEqual } from 'node:crypto';
import { compress, decompress } from '@mongodb-js/zstd';
import { refuse } from './archive-error';
import type { ArchiveKeys } from './archive-keys';
import { formatBounds } from './archive-limits';
import { releaseMemory } from './release-memory';

const frameMagic = 0xfd2fb528;
const blockBytesMax = 128 * 1024;
/**
 * The largest zstd window that a reader accepts: the content of a whole segment. A larger window is refused, because a
 * decoder allocates the whole window before it reads a byte.
 */
const windowBytesMax = 8 * 2 ** 20;

/** The longest frame for 1 MB of content: zstd's bound for incompressible content, with some room. */
const frameBytesMax = 2 ** 20 + 16 * 1024;

/**
 * Inserts the content size into a frame's header, unless the native encoder has written it. The decoder and
 * `checkFrame` then check the size. @throws TypeError when the header has an unknown form
 */
export function declareContentSize(frame: Buffer, rawBytes: number): Buffer {
  const descriptor = frame.readUInt8(4);
  if (frame.readUInt32LE(0) !== frameMagic || descriptor >> 6 !== 0)
    throw new TypeError('unexpected zstd frame header');
  const singleSegment = (descriptor & 0x20) !== 0;
  if (singleSegment) {
    if (frame.readUInt8(5) !== rawBytes) throw new TypeError('unexpected zstd content size');
    return frame;
  }
  // This header sets zstd's flag for a single segment. The window is then as large as the content, so a decoder
  // allocates only the content's size. The encoder's own header asks for 2 MB.
  const head = Buffer.alloc(9);
  head.writeUInt32LE(frameMagic, 0);
  head.writeUInt8((descriptor & 0x04) | 0xa0, 4);
  head.writeUInt32LE(rawBytes, 5);
  return Buffer.concat([head, frame.subarray(6)]);
}

/** A checked frame at the start of a byte sequence. */
interface CheckedFrame {
  /** Length of the frame. */
  bytes: number;
  /** Declared size of the content. */
  rawBytes: number;
}

/**
 * Checks that `bytes` begin with a zstd frame of 1 to `rawBytesMax` bytes of content, without decoding it. Also checks
 * that a decoder cannot produce much more than the declared size.
 * @throws ArchiveError `limit_exceeded` or `mismatch`
 */
export function checkFrame(bytes: Buffer, rawBytesMax: number): CheckedFrame {
  const { headerBytes, rawBytes } = readFrameHeader(bytes);
  if (rawBytes < 1n || rawBytes > BigInt(rawBytesMax))
    refuse('limit_exceeded', `zstd frame declares ${rawBytes} bytes`);
  const hasChecksum = (bytes.readUInt8(4) & 0x04) !== 0;
  const { end, producedMax } = walkBlocks(bytes, headerBytes);
  // The bound is loose, because a block may hold less than 128 kB. The bound only stops a frame with a false size from
  // filling the memory.
  if (producedMax > 4 * Number(rawBytes) + 8 * blockBytesMax)
    refuse('limit_exceeded', 'zstd frame could produce more than it declares');
  const frameBytes = end + (hasChecksum ? 4 : 0);
  if (frameBytes > bytes.length) refuse('mismatch', 'zstd frame cut short');
  return { bytes: frameBytes, rawBytes: Number(rawBytes) };
}

function readFrameHeader(bytes: Buffer): { headerBytes: number; rawBytes: bigint } {
  if (bytes.length < 9 || bytes.readUInt32LE(0) !== frameMagic) refuse('mismatch', 'not a zstd frame');
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

/** Lengths and offsets of the parts of a sealed object. README.md shows the format. */
const headerBytes = 72;
export const macBytes = 32;
const ivAt = 56;

/** Bytes decrypted in one call. The number is small, because the cipher returns its result in new memory. */
const stepBytes = 256 * 1024;

/**
 * Decrypts a verified object frame by frame. All frames use the same buffer one after another, so memory holds at most
 * about 1 MB of decrypted content.
 */
class DecryptedBody {
  private readonly bytes: Buffer;
  private readonly decipher: Decipher;
  private readonly end: number;
  private at = headerBytes;
  private readonly buffer: Buffer;
  private start = 0;
  private filled = 0;

  constructor(keys: ArchiveKeys, bytes: Buffer) {
    this.bytes = bytes;
    this.end = bytes.length - macBytes;
    this.decipher = createDecipheriv('aes-256-ctr', keys.encryption, bytes.subarray(ivAt, headerBytes));
    this.buffer = Buffer.allocUnsafeSlow(Math.min(this.end - headerBytes, frameBytesMax));
  }

  isEmpty(): boolean {
    return this.at === this.end && this.start === this.filled;
  }

  /** Returns the next frame, whose length `check` determines. The frame is valid until the next call. */
  takeFrame(check: (bytes: Buffer) => CheckedFrame): { bytes: Buffer; rawBytes: number } {
    this.fill();
    const frame = check(this.buffer.subarray(this.start, this.filled));
    const bytes = this.buffer.subarray(this.start, this.start + frame.bytes);
    this.start += frame.bytes;
    return { bytes, rawBytes: frame.rawBytes };
  }

  release(): void {
    releaseMemory(this.buffer);
    releaseMemory(this.bytes);
  }

  private fill(): void {
    this.buffer.copyWithin(0, this.start, this.filled);
    this.filled -= this.start;
    this.start = 0;
    while (this.at < this.end && this.filled < this.buffer.length) {
      const step = Math.min(stepBytes, this.end - this.at, this.buffer.length - this.filled);
      const plain = this.decipher.update(this.bytes.subarray(this.at, this.at + step));
      this.filled += plain.copy(this.buffer, this.filled);
      this.at += step;
      releaseMemory(plain);
    }
  }
}

const magic = 'DRYA';
const version = 1;
const zstdLevel = 3;

const objectKinds = { segment: 1, block: 2 } as const;
type ObjectKind = keyof typeof objectKinds;

/**
 * The kind and number of an object. They are part of the authenticated header, so that no object can stand in for
 * another object.
 */
export interface ObjectPlace {
  kind: ObjectKind;
  number: number;
}

/** An object's record in the manifest or in its block. */
export interface ObjectSeal {
  size: number;
  mac: Buffer;
}

interface SealedObject {
  bytes: Buffer;
  seal: ObjectSeal;
}

/** Compresses at most 1 MB of content into a zstd frame. The compression runs on the thread pool. */
export async function compressFrame(raw: Buffer): Promise<Buffer> {
  const compressed = await compress(raw, zstdLevel);
  const frame = declareContentSize(compressed, raw.length);
  if (frame !== compressed) releaseMemory(compressed);
  return frame;
}

/**
 * Encrypts the frames with AES-256-CTR and a random IV, and frees the frames' memory. Then authenticates header and
 * ciphertext with HMAC-SHA256.
 */
export function sealFrames(
  keys: ArchiveKeys,
  place: ObjectPlace,
  frames: readonly Buffer[],
  rawBytes: number,
): SealedObject {
  const bodyBytes = frames.reduce((sum, frame) => sum + frame.length, 0);
  const iv = randomBytes(16);
  const bytes = Buffer.allocUnsafeSlow(headerBytes + bodyBytes + macBytes);
  writeHeader(bytes, { keys, place, iv, rawBytes, bodyBytes });
  const cipher = createCipheriv('aes-256-ctr', keys.encryption, iv);
  let at = headerBytes;
  for (const frame of frames) {
    const encrypted = cipher.update(frame);
    at += encrypted.copy(bytes, at);
    releaseMemory(encrypted);
    releaseMemory(frame);
  }
  const mac = createHmac('sha256', keys.authentication).update(bytes.subarray(0, -macBytes)).digest();
  mac.copy(bytes, at);
  return { bytes, seal: { size: bytes.length, mac } };
}

export async function sealObject(keys: ArchiveKeys, place: ObjectPlace, raw: Buffer): Promise<SealedObject> {
  const frames: Buffer[] = [];
  for (let at = 0; at < raw.length; at += formatBounds.frameRawBytes) {
    frames.push(await compressFrame(raw.subarray(at, at + formatBounds.frameRawBytes)));
  }
  return sealFrames(keys, place, frames, raw.length);
}

/**
 * Authenticates an object against the recorded seal and its own MAC, and compares its header with `place`. @throws
 * ArchiveError `truncated`, `foreign`, `tampered` or `mismatch`
 */
export function verifyObject(keys: ArchiveKeys, place: ObjectPlace, bytes: Buffer, seal: ObjectSeal): void {
  const name = `${place.kind} ${place.number}`;
  if (bytes.length < seal.size || bytes.length < headerBytes + macBytes)
    refuse('truncated', `${name} is shorter than recorded`);
  if (bytes.length !== seal.size) refuse('tampered', `${name} is longer than recorded`);
  const mac = createHmac('sha256', keys.authentication).update(bytes.subarray(0, -macBytes)).digest();
  const authentic = timingSafeEqual(mac, bytes.subarray(-macBytes)) && timingSafeEqual(mac, seal.mac);
  if (!authentic) {
    const sameArchive = bytes.subarray(24, 56).equals(Buffer.concat([keys.archiveTag, keys.salt]));
    refuse(sameArchive ? 'tampered' : 'foreign', `MAC of ${name}`);
  }
  if (
    !bytes.subarray(0, 24).equals(headerStart(place, bytes.readUInt32BE(12), bytes.length - headerBytes - macBytes))
  ) {
    refuse('mismatch', `header of ${name}`);
  }
}

/**
 * Verifies an object and yields its content, frame by frame. Nothing is decrypted before the MACs are verified.
 * The memory of `bytes` is freed at the end, so the caller cannot use it afterwards. A frame is decoded only if its
 * declared size is at most 1 MB and fits into the object's declared size.
 * @throws ArchiveError `truncated`, `foreign`, `tampered`, `limit_exceeded` or `mismatch`
 */
export async function* openFrames(
  keys: ArchiveKeys,
  place: ObjectPlace,
  bytes: Buffer,
  seal: ObjectSeal,
): AsyncGenerator<Buffer> {
  verifyObject(keys, place, bytes, seal);
  const name = `${place.kind} ${place.number}`;
  let left = bytes.readUInt32BE(12);
  const body = new DecryptedBody(keys, bytes);
  while (!body.isEmpty()) {
    const rawBytesMax = Math.min(left, formatBounds.frameRawBytes);
    const frame = body.takeFrame((start) => checkFrame(start, rawBytesMax));
    const raw = await decompress(frame.bytes).catch((error: unknown) =>
      refuse('mismatch', `${name} does not decode`, error),
    );
    if (raw.length !== frame.rawBytes) refuse('mismatch', `a frame of ${name} decodes to ${raw.length} bytes`);
    left -= raw.length;
    yield raw;
  }
  body.release();
  if (left !== 0) refuse('mismatch', `${name} holds less than it declares`);
}

/** Returns the whole content of an index block. @throws ArchiveError like openFrames */
export async function openObject(
  keys: ArchiveKeys,
  place: ObjectPlace,
  bytes: Buffer,
  seal: ObjectSeal,
): Promise<Buffer> {
  const frames: Buffer[] = [];
  let rawBytes = 0;
  for await (const raw of openFrames(keys, place, bytes, seal)) {
    rawBytes += raw.length;
    if (rawBytes > formatBounds.blockIndexRawBytes)
      refuse('limit_exceeded', `${place.kind} ${place.number} is larger than any`);
    frames.push(raw);
  }
  return frames.length === 1 && frames[0] !== undefined ? frames[0] : Buffer.concat(frames);
}

interface HeaderParts {
  keys: ArchiveKeys;
  place: ObjectPlace;
  iv: Buffer;
  rawBytes: number;
  bodyBytes: number;
}

function writeHeader(bytes: Buffer, parts: HeaderParts): void {
  headerStart(parts.place, parts.rawBytes, parts.bodyBytes).copy(bytes, 0);
  parts.keys.archiveTag.copy(bytes, 24);
  parts.keys.salt.copy(bytes, 40);
  parts.iv.copy(bytes, ivAt);
}

function headerStart(place: ObjectPlace, rawBytes: number, bodyBytes: number): Buffer {
  const start = Buffer.alloc(24);
  start.write(magic, 0, 'latin1');
  start.writeUInt8(version, 4);
  start.writeUInt8(objectKinds[place.kind], 5);
  start.writeUInt32BE(place.number, 8);
  start.writeUInt32BE(rawBytes, 12);
  start.writeUInt32BE(bodyBytes, 16);
  return start;
}
