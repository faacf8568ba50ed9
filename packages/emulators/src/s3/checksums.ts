import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';

export const checksumAlgorithms = ['crc32', 'crc32c', 'sha1', 'sha256'] as const;
export type ChecksumAlgorithm = (typeof checksumAlgorithms)[number];

export interface Checksum {
  algorithm: ChecksumAlgorithm;
  /** Base64 as in headers. A checksum of checksums ends with `-<parts>`. */
  value: string;
}

interface RunningChecksum {
  update(bytes: Buffer): void;
  digest(): Buffer;
}

const crc32cTable = Uint32Array.from({ length: 256 }, (_, index) => {
  let value = index;
  for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0x82f63b78 : value >>> 1;
  return value >>> 0;
});

function crc32c(bytes: Buffer, previous: number): number {
  let value = ~previous >>> 0;
  for (const byte of bytes) value = (value >>> 8) ^ (crc32cTable[(value ^ byte) & 255] ?? 0);
  return ~value >>> 0;
}

function runningCrc(step: (bytes: Buffer, previous: number) => number): RunningChecksum {
  let value = 0;
  return {
    update: (bytes) => {
      value = step(bytes, value);
    },
    digest: () => {
      const bytes = Buffer.alloc(4);
      bytes.writeUInt32BE(value);
      return bytes;
    },
  };
}

export function startChecksum(algorithm: ChecksumAlgorithm): RunningChecksum {
  if (algorithm === 'crc32') return runningCrc((bytes, previous) => crc32(bytes, previous));
  if (algorithm === 'crc32c') return runningCrc(crc32c);
  const hash = createHash(algorithm);
  return { update: (bytes) => void hash.update(bytes), digest: () => hash.digest() };
}

/**
 * Returns the checksum of a multipart object: the checksum over its parts' checksums (base64), a dash and the number of
 * parts.
 */
export function compositeChecksum(algorithm: ChecksumAlgorithm, parts: readonly string[]): Checksum {
  const running = startChecksum(algorithm);
  for (const part of parts) running.update(Buffer.from(part, 'base64'));
  return { algorithm, value: `${running.digest().toString('base64')}-${parts.length}` };
}

export const checksumHeader = ({ algorithm, value }: Checksum): Record<string, string> => ({
  [`x-amz-checksum-${algorithm}`]: value,
  'x-amz-checksum-type': value.includes('-') ? 'COMPOSITE' : 'FULL_OBJECT',
});

/** Returns the name of a checksum's XML element. */
export const checksumElement = (algorithm: ChecksumAlgorithm): string => `Checksum${algorithm.toUpperCase()}`;
