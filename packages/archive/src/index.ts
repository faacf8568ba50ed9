export { extract } from './extract/extract';
export { describeFolder, lostParts, restoreFolder } from './files/metadata';
export { ArchiveError, type ArchiveReason, archiveReasons, refuse, systemErrorCode } from './format/archive-error';
export { type DerivedKeys, decodeKeys, deriveKeys, encodeKeys, type RootKey, saltBytes } from './format/archive-keys';
export { completeLimits, formatBounds } from './format/archive-limits';
export {
  type ArchiveSink,
  type ArchiveSource,
  folderSink,
  folderSource,
  isObjectName,
  manifestName,
  type SealedPiece,
  segmentName,
} from './format/archive-objects';
export { textOfBytes } from './format/path-bytes';
export { releaseMemory } from './format/release-memory';
export { pack } from './pack/pack';
export {
  changedWhileRead,
  directoryRoot,
  linkIntoRelease,
  partlyKept,
  type StreamEntry,
  streamRoot,
} from './pack/pack-roots';
export { exportTar } from './read/export-tar';
export {
  type ArchiveLink,
  deriveKeysOf,
  type OpenArchive,
  openArchive,
  openChain,
  readBlocks,
  readFacts,
} from './read/open-archive';
export { type EntryInTurn, entriesInTurn, type OpenedEntry, openEntries } from './read/open-entries';
export { blockPiecesOf, piecesOf, verifyArchive, verifyChain, verifyPiece } from './read/verify-archive';
