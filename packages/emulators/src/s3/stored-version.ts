import { z } from 'zod';
import { checksumAlgorithms } from './checksums';

export const retentionModes = ['GOVERNANCE', 'COMPLIANCE'] as const;
export const retentionSchema = z.strictObject({ mode: z.enum(retentionModes), until: z.iso.datetime() });
export type Retention = z.infer<typeof retentionSchema>;

export const checksumSchema = z.strictObject({ algorithm: z.enum(checksumAlgorithms), value: z.string() });

/** A file below the bucket's folder, with its size. A multipart object has one for each part. */
export const pieceSchema = z.strictObject({ file: z.string(), bytes: z.int() });
export type Piece = z.infer<typeof pieceSchema>;

/** One version of an object, or a delete marker. */
export const storedVersionSchema = z.strictObject({
  key: z.string(),
  /** 'null' in a bucket without versioning. */
  versionId: z.string(),
  /** A number that rises with each version in the bucket. The newest version of a key has the greatest one. */
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
