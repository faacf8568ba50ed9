import { releaseMemory } from '../extract/release-memory';
import type { IndexBlock } from '../pack/index-block';
import type { OpenArchive } from '../read/open-archive';
import { readBlocks } from '../read/read-blocks';
import { refuse } from './archive-error';
import { type ArchiveSource, blockName, type SealedPiece, segmentName } from './archive-objects';
import { type ObjectPlace, type ObjectSeal, verifyObject } from './sealed-object';

/**
 * Every object of an archive except its manifest, in the order in which they can be read: the blocks, which the
 * manifest names, and after each block that has been read its segments. @throws ArchiveError when a block is not what
 * the manifest says
 */
export async function* piecesOf(archive: OpenArchive, signal?: AbortSignal): AsyncGenerator<SealedPiece> {
  for (let number = 0; number < archive.manifest.blocks.length; number += 1) yield blockPiece(archive, number);
  for (const { name } of archive.manifest.roots) {
    for await (const { block } of readBlocks(archive, name, signal)) yield* segmentPieces(archive, block);
  }
}

/** The segments of a block that has been verified. */
export const segmentPieces = (archive: OpenArchive, block: IndexBlock): SealedPiece[] =>
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

/** Makes sure that a piece exists and is what it was when it was sealed. @throws ArchiveError */
export async function verifyPiece(source: ArchiveSource, piece: SealedPiece): Promise<void> {
  if (source.hold !== undefined) return source.hold(piece);
  const bytes = await source.read(piece.name);
  piece.verify(bytes);
  releaseMemory(bytes);
}
