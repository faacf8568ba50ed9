import { refuse } from '../format/archive-error';
import type { ArchiveKey } from '../format/archive-keys';
import { type ArchiveLimits, completeLimits, formatBounds } from '../format/archive-limits';
import type { ArchiveSource } from '../format/archive-objects';
import { checkPath } from '../format/entry-rules';
import type { Manifest } from '../format/manifest';
import { segmentPieces, verifyPiece } from '../format/sealed-pieces';
import { createPace, type Pace } from '../pack/pace';
import { checkTree } from './check-tree';
import type { ArchiveLink, ExpectedArchive, OpenArchive } from './open-archive';
import { openArchive } from './open-archive';
import { openChain } from './open-chain';
import { type NumberedBlock, readBlocks } from './read-blocks';
import { ContentReader } from './read-contents';

export interface VerifyOptions {
  limits?: Partial<ArchiveLimits>;
  /**
   * Whether to decode every segment and compare every file's SHA-256, too. When left out, every MAC is checked, which
   * shows that the bytes are those that were written.
   */
  contents?: boolean;
  signal?: AbortSignal;
}

/**
 * Verifies one archive: its manifest, that it is the expected one, every index block and segment, every entry, and all
 * counts. Resolves with the manifest. Memory does not grow with the archive. @throws ArchiveError
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
 * Verifies every archive of a chain, the full archive first, the links between them, and the tree that they describe
 * together. Resolves with the manifests. @throws ArchiveError
 */
export async function verifyChain(
  links: readonly ArchiveLink[],
  key: ArchiveKey,
  options: VerifyOptions = {},
): Promise<Manifest[]> {
  const archives = await openChain(links, key, completeLimits(options.limits));
  for (const archive of archives) await verifyObjects(archive, options);
  await verifyTrees(archives, options);
  return archives.map(({ manifest }) => manifest);
}

/** Everything that can be known about one archive without the others of its chain. */
async function verifyObjects(archive: OpenArchive, options: VerifyOptions): Promise<void> {
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
      if (options.contents === true) await readContents(contents, numbered, pace);
      else await verifySegments(archive, numbered, pace);
    }
  }
  const { segments, size_bytes: sizeBytes } = archive.manifest;
  if (total.segments !== segments || total.sizeBytes !== sizeBytes)
    refuse('mismatch', 'segments are not those that the manifest declares');
}

/** Entries of a stream root are named files, and each name is there once. */
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
  const target = {
    limits: completeLimits(options.limits),
    folds: false,
    pathBytesMax: formatBounds.pathBytes,
    ...signal,
  };
  for (const root of newest.manifest.roots) if (root.kind === 'tree') await checkTree(archives, root.name, target);
}
