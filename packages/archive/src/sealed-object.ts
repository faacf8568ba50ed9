import { createCipheriv, createDecipheriv, createHmac, randomBytes, timingSafeEqual } from 'node:crypto';
import { compress, decompress } from '@mongodb-js/zstd';
import { refuse } from './archive-error';
import type { ArchiveKeys } from './archive-keys';
import { checkFrame, declareContentSize } from './zstd-frame';

const headerBytes = 72;
export const macBytes = 32;
const magic = 'DRYA';
const version = 1;
const zstdLevel = 3;

export const objectKinds = { segment: 1, block: 2 } as const;
export type ObjectKind = keyof typeof objectKinds;

/** Which object this is; part of the authenticated header, so that no object can stand in for another. */
export interface ObjectPlace {
  kind: ObjectKind;
  number: number;
}

/** What the level above records about an object. */
export interface ObjectSeal {
  /** Bytes of the whole object. */
  size: number;
  mac: Buffer;
}

/** Compresses, encrypts (AES-256-CTR under a random IV) and then authenticates header and ciphertext (HMAC-SHA256). */
export async function sealObject(keys: ArchiveKeys, place: ObjectPlace, raw: Buffer): Promise<{ bytes: Buffer; seal: ObjectSeal }> {
  const frame = declareContentSize(await compress(raw, zstdLevel), raw.length);
  const iv = randomBytes(16);
  const bytes = Buffer.allocUnsafeSlow(headerBytes + frame.length + macBytes);
  writeHeader(bytes, { keys, place, iv, rawBytes: raw.length, bodyBytes: frame.length });
  createCipheriv('aes-256-ctr', keys.encryption, iv).update(frame).copy(bytes, headerBytes);
  const mac = createHmac('sha256', keys.authentication).update(bytes.subarray(0, -macBytes)).digest();
  mac.copy(bytes, bytes.length - macBytes);
  return { bytes, seal: { size: bytes.length, mac } };
}

/**
 * Authenticates an object: first against the seal that the level above recorded, then by its own MAC.
 * @throws ArchiveError `truncated`, `foreign` or `tampered`
 */
export function verifyObject(keys: ArchiveKeys, place: ObjectPlace, bytes: Buffer, seal: ObjectSeal): void {
  const name = `${place.kind} ${place.number}`;
  if (bytes.length < seal.size || bytes.length < headerBytes + macBytes) refuse('truncated', `${name} is shorter than recorded`);
  if (bytes.length !== seal.size) refuse('tampered', `${name} is longer than recorded`);
  const mac = createHmac('sha256', keys.authentication).update(bytes.subarray(0, -macBytes)).digest();
  const authentic = timingSafeEqual(mac, bytes.subarray(-macBytes)) && timingSafeEqual(mac, seal.mac);
  if (!authentic) {
    const sameArchive = bytes.subarray(24, 56).equals(Buffer.concat([keys.archiveTag, keys.salt]));
    refuse(sameArchive ? 'tampered' : 'foreign', `MAC of ${name}`);
  }
  if (!bytes.subarray(0, 24).equals(headerStart(place, bytes.readUInt32BE(12), bytes.length - headerBytes - macBytes))) {
    refuse('mismatch', `header of ${name}`);
  }
}

/**
 * Verifies an object and returns its content. Nothing of it is decrypted before its MACs agree, or decoded before its zstd frame is
 * known to declare exactly `rawBytes`.
 * @throws ArchiveError `truncated`, `foreign`, `tampered`, `limit_exceeded` or `mismatch`
 */
export async function openObject(
  keys: ArchiveKeys,
  place: ObjectPlace,
  bytes: Buffer,
  seal: ObjectSeal,
  rawBytesMax: number,
): Promise<Buffer> {
  verifyObject(keys, place, bytes, seal);
  const rawBytes = bytes.readUInt32BE(12);
  if (rawBytes > rawBytesMax) refuse('limit_exceeded', `${place.kind} ${place.number} declares ${rawBytes} bytes`);
  const iv = bytes.subarray(56, headerBytes);
  const frame = createDecipheriv('aes-256-ctr', keys.encryption, iv).update(bytes.subarray(headerBytes, -macBytes));
  checkFrame(frame, rawBytes);
  const raw = await decompress(frame).catch((error: unknown) => refuse('mismatch', `${place.kind} ${place.number} does not decode`, error));
  if (raw.length !== rawBytes) refuse('mismatch', `${place.kind} ${place.number} decodes to ${raw.length} bytes`);
  return raw;
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
  parts.iv.copy(bytes, 56);
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
