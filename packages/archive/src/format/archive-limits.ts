/** Limits of a reader, whatever an archive declares. */
export interface ArchiveLimits {
  /** Entries over all archives of a chain, tombstones included. */
  entriesMax: number;
  /** Bytes of file content over all archives of a chain. */
  rawBytesMax: number;
  /** Components of a path. */
  depthMax: number;
  /** Hard links and files with several names, which have to be remembered while a tree is checked. */
  linkedFilesMax: number;
}

export const defaultLimits: ArchiveLimits = {
  entriesMax: 20_000_000,
  rawBytesMax: 4 * 2 ** 40,
  depthMax: 32_768,
  linkedFilesMax: 100_000,
};

/** Bounds of the format itself. A writer stays below them and a reader refuses what is above, before it allocates. */
export const formatBounds = {
  /** File bytes in one segment. */
  segmentRawBytes: 8 * 2 ** 20,
  /** File bytes in one zstd frame of a segment: what a reader has to hold at once. */
  frameRawBytes: 2 ** 20,
  /** A block is closed after this many entries … */
  blockEntries: 2048,
  /** … or after this many bytes of content, so that two workers get even shares: two segments, with room for the file that crosses it. */
  blockRawBytes: 15 * 2 ** 20,
  /** One file of 2 TB (a row of 44 bytes per segment). A block is closed at half of it, so that one more entry fits, whatever its path, link and attributes are. */
  blockIndexRawBytes: 24 * 2 ** 20,
  /** 80 bytes per block: about 400 million small files. */
  manifestBytes: 16 * 2 ** 20,
  /** The largest number in its length field of 16 bits. */
  pathBytes: 65_535,
  nameBytes: 255,
  /** Target of a symlink: the most that Linux takes. */
  targetBytes: 4095,
  /** Extended attributes of one path, encoded. */
  attributeBytes: 8 * 2 ** 20,
  /** Entries of a root whose content comes as streams: their names are kept in memory. */
  streamEntries: 100_000,
} as const;

/** Fills what the caller left out with the defaults. */
export function completeLimits(limits: Partial<ArchiveLimits> = {}): ArchiveLimits {
  return { ...defaultLimits, ...limits };
}
