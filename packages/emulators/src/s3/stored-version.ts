import { z } from 'zod';
import { checksumAlgorithms } from './checksums';

export const retentionModes = ['GOVERNANCE', 'COMPLIANCE'] as const;
export const retentionSchema = z.strictObject({ mode: z.enum(retentionModes), until: z.iso.datetime() });
export type Retention = z.infer<typeof retentionSchema>;

export const checksumSchema = z.strictObject({ algorithm: z.enum(checksumAlgorithms), value: z.string() });

/**
 * A file below the bucket's folder, and how much of the object it holds. A multipart object keeps its parts in the
 * order in which they came.
 */
export const pieceSchema = z.strictObject({ file: z.string(), bytes: z.int() });
export type Piece = z.infer<typeof pieceSchema>;

/** One version of an object, or a delete marker. */
export const storedVersionSchema = z.strictObject({
  key: z.string(),
  /** 'null' in a bucket without versions. */
  versionId: z.string(),
  /** Counts up in the whole bucket. The newest version of a key has the greatest number. */
  seq: z.int(),
  isDeleteMarker: z.boolean(),
  pieces: z.array(pieceSchema),
  bytes: z.int(),
  /** Without quotes. */
  etag: z.string(),
  modifiedAt: z.iso.datetime(),
  contentType: z.string(),
  /** x-amz-meta-*, lower-case, whole names. */
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
  /** The retention of a version that asks for none itself. */
  defaultRetention: z.strictObject({ mode: z.enum(retentionModes), days: z.int() }).nullable(),
});
export type BucketSettings = z.infer<typeof bucketSettingsSchema>;
