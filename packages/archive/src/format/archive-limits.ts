/** Limits of a reader, whatever an archive declares. */
export interface ArchiveLimits {
  /** Entries of all archives of a chain together, tombstones included. */
  entriesMax: number;
  /** Bytes of file content of all archives of a chain together. */
  rawBytesMax: number;
  /** Components of a path. */
  depthMax: number;
  /** The most hard links and files with several names, which are kept in memory while a tree is checked. */
  linkedFilesMax: number;
}

export const defaultLimits: ArchiveLimits = {
  entriesMax: 20_000_000,
  rawBytesMax: 4 * 2 ** 40,
  depthMax: 32_768,
  linkedFilesMax: 100_000,
};

/**
 * Bounds of the format itself. A writer stays below them. A reader refuses what is above them, before it allocates
 * memory.
 */
export const formatBounds = {
  /** File bytes in one segment. */
  segmentRawBytes: 8 * 2 ** 20,
  /** File bytes in one zstd frame of a segment. A reader holds this much at once. */
  frameRawBytes: 2 ** 20,
  /** A block is closed after this many entries … */
  blockEntries: 2048,
  /**
   * … or after this many bytes of content, so that two workers get equal shares: two segments, with room for the file
   * that crosses the boundary.
   */
  blockRawBytes: 15 * 2 ** 20,
  /**
   * The limit suffices for one file of 2 TB (a row of 44 bytes per segment). A block is closed at half of this size, so
   * that one more entry fits, whatever its path, link and attributes are.
   */
  blockIndexRawBytes: 24 * 2 ** 20,
  /** 80 bytes per block: about 400 million small files. */
  manifestBytes: 16 * 2 ** 20,
  /** The largest number in its length field of 16 bits. */
  pathBytes: 65_535,
  nameBytes: 255,
  /** The target of a symlink: the longest that Linux accepts. */
  targetBytes: 4095,
  /** Extended attributes of one path, encoded. */
  attributeBytes: 8 * 2 ** 20,
  /** Entries of a root whose content comes as streams. Their names are kept in memory. */
  streamEntries: 100_000,
} as const;

/** Fills in the defaults for what the caller left out. */
export function completeLimits(limits: Partial<ArchiveLimits> = {}): ArchiveLimits {
  return { ...defaultLimits, ...limits };
}
