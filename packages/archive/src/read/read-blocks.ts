import { refuse } from '../format/archive-error';
import { checkAscending, type IndexBlock } from '../format/index-block';
import { RootTally } from '../format/manifest';
import { releaseMemory } from '../format/release-memory';
import { findRoot, firstBlockOf, type OpenArchive, readBlock } from './open-archive';

export interface NumberedBlock {
  number: number;
  block: IndexBlock;
}

/**
 * Yields the blocks of a root of one archive, in order and verified. A block is valid until the next one is requested.
 * The counts are compared with the manifest at the end. One block is read ahead. @throws ArchiveError; `mismatch` when
 * entries are missing, too many, or use segments out of order
 */
export async function* readBlocks(
  archive: OpenArchive,
  rootName: string,
  signal?: AbortSignal,
): AsyncGenerator<NumberedBlock> {
  const root = findRoot(archive, rootName);
  const first = firstBlockOf(archive, rootName);
  const tally = new RootTally();
  let nextSegment: number | null = null;
  let previousPath: string | null = null;
  const start = (number: number): Promise<IndexBlock> => {
    const reading = readBlock(archive, root, number);
    reading.catch(() => undefined); // the error is awaited in the next round
    return reading;
  };
  let ahead = root.blocks > 0 ? start(first) : null;
  for (let number = first; ahead !== null; number += 1) {
    signal?.throwIfAborted();
    const block: IndexBlock = await ahead;
    ahead = number + 1 < first + root.blocks ? start(number + 1) : null;
    if (nextSegment !== null && block.firstSegment !== nextSegment)
      refuse('mismatch', `block ${number} uses segments out of order`);
    nextSegment = block.firstSegment + block.segments.length;
    if (root.kind === 'tree') previousPath = checkContinues(previousPath, block);
    for (const entry of block.entries) tally.count(entry);
    yield { number, block };
    releaseMemory(block.raw);
  }
  checkCounts(tally, archive, rootName);
}

function checkContinues(previous: string | null, block: IndexBlock): string | null {
  const [first, last] = [block.entries[0], block.entries.at(-1)];
  if (first !== undefined && previous !== null) checkAscending(previous, first.path);
  return last?.path ?? previous;
}

function checkCounts(tally: RootTally, archive: OpenArchive, rootName: string): void {
  const root = findRoot(archive, rootName);
  const agrees =
    tally.entries === root.entries && tally.tombstones === root.tombstones && tally.rawBytes === root.raw_bytes;
  if (!agrees)
    refuse(
      'mismatch',
      `root ${rootName} holds ${tally.entries} entries of ${tally.rawBytes} bytes, not what it declares`,
    );
  if (tally.tombstones > 0 && archive.manifest.parent_mac === null) refuse('mismatch', 'a full archive with deletions');
}
