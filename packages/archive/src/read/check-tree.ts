import type { BlockTask } from '../extract/worker-messages';
import { refuse } from '../format/archive-error';
import { type ArchiveLimits, formatBounds } from '../format/archive-limits';
import { mergeTree, type TreeItem } from './merge-tree';
import { findRoot, firstBlockOf, type OpenArchive } from './open-archive';
import { TreeChecker } from './tree-checker';

export interface TreeTarget {
  limits: ArchiveLimits;
  /** The target treats names as equal that differ only in case or normalisation. */
  folds: boolean;
  signal?: AbortSignal;
}

export interface CheckedTree {
  entries: number;
  rawBytes: number;
  /** The work of an extraction: 1 bit per entry, and the blocks that hold any entry to extract. */
  tasks: BlockTask[];
}

/**
 * Reads and checks the whole index of a tree root over a chain, before anything is written. @throws ArchiveError with
 * any reason
 */
export async function checkTree(
  archives: readonly OpenArchive[],
  root: string,
  target: TreeTarget,
): Promise<CheckedTree> {
  for (const archive of archives) {
    if (findRoot(archive, root).kind !== 'tree') refuse('unknown_root', `${root} is no tree of files`);
  }
  const checker = new TreeChecker(target.limits, target);
  const live = archives.length > 1 ? archives.map(() => new Map<number, Uint8Array>()) : null;
  const tree = { entries: 0, rawBytes: 0 };
  for await (const batch of mergeTree(archives, root, target.signal)) {
    for (const item of batch) {
      checker.check(item.entry);
      tree.entries += 1;
      tree.rawBytes += item.entry.size;
      if (live !== null) markLive(live, item);
    }
    if (tree.entries > target.limits.entriesMax || tree.rawBytes > target.limits.rawBytesMax)
      refuse('limit_exceeded', 'tree larger than allowed');
  }
  return { ...tree, tasks: archives.flatMap((archive, at) => listTasks(archive, at, root, live?.[at] ?? null)) };
}

function markLive(live: readonly Map<number, Uint8Array>[], item: TreeItem): void {
  const ofArchive = live[item.archive] ?? refuse('mismatch', 'entry of an unknown archive');
  const bits = ofArchive.get(item.block.number) ?? new Uint8Array(formatBounds.blockEntries / 8);
  bits[item.row >> 3] = (bits[item.row >> 3] ?? 0) | (1 << (item.row & 7));
  ofArchive.set(item.block.number, bits);
}

function listTasks(archive: OpenArchive, at: number, root: string, live: Map<number, Uint8Array> | null): BlockTask[] {
  const first = firstBlockOf(archive, root);
  const tasks: BlockTask[] = [];
  for (let block = first; block < first + findRoot(archive, root).blocks; block += 1) {
    const [size, mac] = archive.manifest.blocks[block] ?? refuse('mismatch', `no block ${block}`);
    const bits = live?.get(block) ?? null;
    if (live === null || bits !== null)
      tasks.push({ archive: at, block, seal: { size, mac: Buffer.from(mac, 'hex') }, live: bits });
  }
  return tasks;
}
