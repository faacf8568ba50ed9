/** The reader's limits, which apply whatever an archive declares. */
export interface ArchiveLimits {
  /** The most entries of one archive, tombstones included. Also the most entries of a tree that a chain describes. */
  entriesMax: number;
  /** The most bytes of file content of one archive. Also the most bytes of a tree that a chain describes. */
  rawBytesMax: number;
  /** The most names in a path. */
  depthMax: number;
  /** The most files with several names. A reader keeps their paths in memory while it checks a tree. */
  linkedFilesMax: number;
}

export const defaultLimits: ArchiveLimits = {
  entriesMax: 20_000_000,
  rawBytesMax: 4 * 2 ** 40,
  depthMax: 32_768,
  linkedFilesMax: 100_000,
};

/** Limits of the format. A writer keeps all of them. A reader checks at least the limits that bound its memory. */
export const formatBounds = {
  /** Bytes of file content in a segment. */
  segmentRawBytes: 8 * 2 ** 20,
  /** Bytes of file content in a zstd frame, the unit that a reader decodes at a time. */
  frameRawBytes: 2 ** 20,
  /** A block ends after this many entries. */
  blockEntries: 2048,
  /**
   * A block also ends after this many bytes of content, so that workers get equal shares. The limit is 1 MB below two
   * full segments, so that a block of files below 1 MB fits into two segments.
   */
  blockRawBytes: 15 * 2 ** 20,
  /**
   * Bytes of an index block. One file of 4 TB fits, with a row of 40 bytes for each segment of 8 MB. A writer ends a
   * block at half of this size, so that any further entry fits.
   */
  blockIndexRawBytes: 24 * 2 ** 20,
  /** A manifest has 80 bytes for each block, so 16 MB are enough for about 400 million small files. */
  manifestBytes: 16 * 2 ** 20,
  /** The largest value of a 16-bit length field. */
  pathBytes: 65_535,
  nameBytes: 255,
  /** The longest target of a symlink that Linux accepts. */
  targetBytes: 4095,
  /** Encoded extended attributes of one path. */
  attributeBytes: 8 * 2 ** 20,
  /** The most entries of a stream root, because a reader keeps their names in memory. */
  streamEntries: 100_000,
} as const;

export function completeLimits(limits: Partial<ArchiveLimits> = {}): ArchiveLimits {
  return { ...defaultLimits, ...limits };
}
