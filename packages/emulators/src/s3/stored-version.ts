import { createHash } from 'node:crypto';
import { crc32 } from 'node:zlib';
import { z } from 'zod';

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

export const checksumElement = (algorithm: ChecksumAlgorithm): string => `Checksum${algorithm.toUpperCase()}`;

export const retentionModes = ['GOVERNANCE', 'COMPLIANCE'] as const;
export const retentionSchema = z.strictObject({ mode: z.enum(retentionModes), until: z.iso.datetime() });
export type Retention = z.infer<typeof retentionSchema>;

export const checksumSchema = z.strictObject({ algorithm: z.enum(checksumAlgorithms), value: z.string() });

/** A file below the bucket's folder, with its size. A multipart object has one file for each part. */
export const pieceSchema = z.strictObject({ file: z.string(), bytes: z.int() });
export type Piece = z.infer<typeof pieceSchema>;

/** One version of an object, or a delete marker. */
export const storedVersionSchema = z.strictObject({
  key: z.string(),
  /** 'null' in a bucket without versioning. */
  versionId: z.string(),
  /** A number that rises with each version in the bucket. The newest version of a key has the greatest number. */
  seq: z.int(),
  isDeleteMarker: z.boolean(),
  pieces: z.array(pieceSchema),
  bytes: z.int(),
  /** The ETag without its quotes. */
  etag: z.string(),
  modifiedAt: z.iso.datetime(),
  contentType: z.string(),
  /** The headers x-amz-meta-* by their full lower-case names. */
  metadata: z.record(z.string(), z.string()),
  checksum: checksumSchema.nullable(),
  retention: retentionSchema.nullable(),
  isOnLegalHold: z.boolean(),
});
export type StoredVersion = z.infer<typeof storedVersionSchema>;

export const bucketSettingsSchema = z.strictObject({
  name: z.string(),
  createdAt: z.iso.datetime(),
  hasVersions: z.boolean(),
  hasObjectLock: z.boolean(),
  /** The retention of a version whose request has none. */
  defaultRetention: z.strictObject({ mode: z.enum(retentionModes), days: z.int() }).nullable(),
});
export type BucketSettings = z.infer<typeof bucketSettingsSchema>;
