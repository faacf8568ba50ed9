import { refuse } from '../format/archive-error';
import type { ArchiveKey } from '../format/archive-keys';
import { type ArchiveLimits, completeLimits, formatBounds } from '../format/archive-limits';
import { type ArchiveSource, blockName, type SealedPiece, segmentName } from '../format/archive-objects';
import { checkPath } from '../format/entry';
import type { IndexBlock } from '../format/index-block';
import type { Manifest } from '../format/manifest';
import { releaseMemory } from '../format/release-memory';
import { type ObjectPlace, type ObjectSeal, verifyObject } from '../format/sealed-object';
import { checkTree } from './check-tree';
import {
  type ArchiveLink,
  type ExpectedArchive,
  type NumberedBlock,
  type OpenArchive,
  openArchive,
  openChain,
  readBlocks,
} from './open-archive';
import { createPace, type Pace } from './pace';
import { ContentReader } from './read-contents';

interface PiecesOptions {
  /**
   * True for every archive of a chain except the newest. The segments of its streams are left out, because the newest
   * archive holds every stream whole.
   */
  isSuperseded?: boolean;
  signal?: AbortSignal;
}

/**
 * Yields every object of an archive except the manifest. The blocks come first, then the segments, because only a block
 * names its segments. @throws ArchiveError when a block differs from the manifest
 */
export async function* piecesOf(
  archive: OpenArchive,
  { isSuperseded = false, signal }: PiecesOptions = {},
): AsyncGenerator<SealedPiece> {
  yield* blockPiecesOf(archive);
  for (const { name, kind } of archive.manifest.roots) {
    if (isSuperseded && kind === 'stream') continue;
    for await (const { block } of readBlocks(archive, name, signal)) yield* segmentPieces(archive, block);
  }
}

/** The index blocks of an archive, as its manifest lists them. Nothing is read. */
export const blockPiecesOf = (archive: OpenArchive): SealedPiece[] =>
  archive.manifest.blocks.map((_, number) => blockPiece(archive, number));

const segmentPieces = (archive: OpenArchive, block: IndexBlock): SealedPiece[] =>
  block.segments.map((seal, at) => {
    const number = block.firstSegment + at;
    return pieceOf(archive, segmentName(number), { kind: 'segment', number }, seal);
  });

function blockPiece(archive: OpenArchive, number: number): SealedPiece {
  const [size, mac] = archive.manifest.blocks[number] ?? refuse('mismatch', `no block ${number}`);
  return pieceOf(archive, blockName(number), { kind: 'block', number }, { size, mac: Buffer.from(mac, 'hex') });
}

const pieceOf = ({ keys }: OpenArchive, name: string, place: ObjectPlace, seal: ObjectSeal): SealedPiece => ({
  name,
  size: seal.size,
  verify: (bytes) => verifyObject(keys, place, bytes, seal),
});

/** Checks that a piece exists and is unchanged since it was sealed. @throws ArchiveError */
export async function verifyPiece(source: ArchiveSource, piece: SealedPiece): Promise<void> {
  if (source.hold !== undefined) return source.hold(piece);
  const bytes = await source.read(piece.name);
  piece.verify(bytes);
  releaseMemory(bytes);
}

interface VerifyOptions {
  limits?: Partial<ArchiveLimits>;
  /**
   * True to decode every segment and compare every file's SHA-256. By default only the MACs of the segments are
   * checked. A MAC proves that a segment is unchanged since it was written.
   */
  contents?: boolean;
  signal?: AbortSignal;
}

/**
 * Verifies one archive with its manifest, every index block, segment and entry, and all counts. The tree is checked
 * only for a full archive, because an increment alone is no tree. Resolves with the manifest. Memory hardly grows with
 * the archive. @throws ArchiveError
 */
export async function verifyArchive(
  source: ArchiveSource,
  key: ArchiveKey,
  expected: ExpectedArchive,
  options: VerifyOptions = {},
): Promise<Manifest> {
  const archive = await openArchive({ source, expected }, key, completeLimits(options.limits));
  await verifyObjects(archive, options);
  if (archive.manifest.parent_mac === null) await verifyTrees([archive], options);
  return archive.manifest;
}

/**
 * Verifies a chain of archives, the full archive first: every archive, the links between the archives, and the trees
 * that they describe together. No segment of a superseded stream is read, because no reader of the chain uses it.
 * Resolves with the manifests. @throws ArchiveError
 */
export async function verifyChain(
  links: readonly ArchiveLink[],
  key: ArchiveKey,
  options: VerifyOptions = {},
): Promise<Manifest[]> {
  const archives = await openChain(links, key, completeLimits(options.limits));
  for (const archive of archives) await verifyObjects(archive, options, archive !== archives.at(-1));
  await verifyTrees(archives, options);
  return archives.map(({ manifest }) => manifest);
}

/**
 * Verifies the blocks and segments of one archive, without the other archives of its chain. With `isSuperseded` the
 * segments of streams are not read, but the blocks that list these segments are verified.
 */
async function verifyObjects(archive: OpenArchive, options: VerifyOptions, isSuperseded = false): Promise<void> {
  const pace = createPace(options.signal);
  const limits = completeLimits(options.limits);
  const contents = new ContentReader(archive);
  const total = { segments: 0, sizeBytes: archive.manifest.blocks.reduce((sum, [size]) => sum + size, 0) };
  for (const root of archive.manifest.roots) {
    const seen = root.kind === 'stream' ? new Set<string>() : null;
    for await (const numbered of readBlocks(archive, root.name, options.signal)) {
      const { block } = numbered;
      if (block.firstSegment !== total.segments) refuse('mismatch', `block ${numbered.number} skips segments`);
      for (const entry of block.entries) checkPath(entry.path, limits.depthMax);
      if (seen !== null) checkStreams(seen, numbered);
      total.segments += block.segments.length;
      total.sizeBytes += block.segments.reduce((sum, segment) => sum + segment.size, 0);
      if (isSuperseded && seen !== null) continue;
      if (options.contents === true) await readContents(contents, numbered, pace);
      else await verifySegments(archive, numbered, pace);
    }
  }
  const { segments, size_bytes: sizeBytes } = archive.manifest;
  if (total.segments !== segments || total.sizeBytes !== sizeBytes)
    refuse('mismatch', 'segments are not those that the manifest declares');
}

/** Checks that the entries of a stream root are files with different names. */
export function checkStreams(seen: Set<string>, { block }: NumberedBlock): void {
  for (const entry of block.entries) {
    if (entry.type !== 'file') refuse('hostile_entry', `${entry.type} among streams: ${entry.path}`);
    if (seen.has(entry.path)) refuse('hostile_entry', `the same stream twice: ${entry.path}`);
    seen.add(entry.path);
    if (seen.size > formatBounds.streamEntries) refuse('limit_exceeded', 'too many streams in one root');
  }
}

async function verifySegments(archive: OpenArchive, { block }: NumberedBlock, pace: Pace): Promise<void> {
  for (const piece of segmentPieces(archive, block)) {
    await verifyPiece(archive.source, piece);
    await pace();
  }
}

async function readContents(contents: ContentReader, numbered: NumberedBlock, pace: Pace): Promise<void> {
  for (const [row, entry] of numbered.block.entries.entries()) {
    if (entry.type !== 'file') continue;
    for await (const piece of contents.read(numbered, row)) if (piece.length > 0) await pace();
  }
}

async function verifyTrees(archives: readonly OpenArchive[], options: VerifyOptions): Promise<void> {
  const newest = archives.at(-1) ?? refuse('chain_gap', 'a chain without archives');
  const signal = options.signal && { signal: options.signal };
  const target = { limits: completeLimits(options.limits), folds: false, ...signal };
  for (const root of newest.manifest.roots) if (root.kind === 'tree') await checkTree(archives, root.name, target);
}
