import { createHash } from 'node:crypto';
import { refuse } from '../format/archive-error';
import { type ArchiveLimits, formatBounds } from '../format/archive-limits';
import { checkPath, type Entry, symlinkProblem } from '../format/entry';
import { checkAscending } from '../format/index-block';
import { type ByteString, lastName, parentPath, textOfBytes } from '../format/path-bytes';
import { mergeTree, type TreeItem } from './merge-tree';
import { findRoot, firstBlockOf, type OpenArchive } from './open-archive';

interface OpenDirectory {
  path: ByteString;
  names: FoldedNames | null;
}

/**
 * Checks a tree, entry by entry in path order, before anything is written. The checker remembers only the open
 * directories and the possible targets of hard links. For a file system that ignores case or normalisation, it also
 * remembers the names in open directories. So the checker's memory does not grow with the whole tree.
 */
class TreeChecker {
  private readonly limits: ArchiveLimits;
  private readonly folds: boolean;
  private readonly open: OpenDirectory[];
  private readonly linkedFiles = new Set<ByteString>();
  private previous: ByteString = '';

  constructor(limits: ArchiveLimits, options: { folds: boolean }) {
    this.limits = limits;
    this.folds = options.folds;
    this.open = [this.directory('')];
  }

  /** Checks the next entry. @throws ArchiveError `hostile_entry` or `limit_exceeded` */
  check(entry: Entry): void {
    const { path } = entry;
    checkPath(path, this.limits.depthMax);
    checkAscending(this.previous, path);
    this.previous = path;
    this.enterParent(path).names?.add(lastName(path));
    if (entry.type === 'directory') this.open.push(this.directory(path));
    if (entry.type === 'symlink') this.checkSymlink(entry);
    if (entry.type === 'hardlink') this.checkHardLink(entry);
    if (entry.linked) this.rememberLinked(path);
  }

  /**
   * Finds the parent of a path. The parent must be a directory of this tree. Otherwise an entry could be written
   * through a link to a place outside of the tree.
   */
  private enterParent(path: ByteString): OpenDirectory {
    const parent = parentPath(path);
    for (;;) {
      const top = this.open.at(-1);
      if (top === undefined) refuse('hostile_entry', `not inside a directory of the archive: ${path}`);
      if (top.path === parent) return top;
      this.open.pop();
    }
  }

  private checkSymlink(entry: Entry): void {
    const problem = symlinkProblem(entry.link);
    if (problem !== null) refuse('hostile_entry', `${problem}: ${entry.path}`);
  }

  /**
   * Checks a hard link. Its target must be an earlier entry, because only earlier entries have been checked. A packer
   * always puts the target first.
   */
  private checkHardLink(entry: Entry): void {
    if (!this.linkedFiles.has(entry.link))
      refuse('hostile_entry', `hard link to something else than an earlier file: ${entry.path}`);
  }

  private rememberLinked(path: ByteString): void {
    this.linkedFiles.add(path);
    if (this.linkedFiles.size > this.limits.linkedFilesMax)
      refuse('limit_exceeded', 'too many files with several names');
  }

  private directory(path: ByteString): OpenDirectory {
    return { path, names: this.folds ? new FoldedNames() : null };
  }
}

interface TreeTarget {
  limits: ArchiveLimits;
  /** True if the target's file system ignores case or Unicode normalisation in names. */
  folds: boolean;
  signal?: AbortSignal;
}

export interface CheckedTree {
  entries: number;
  rawBytes: number;
  /** The blocks with at least one entry to extract. */
  tasks: BlockTask[];
}

/**
 * Reads and checks the index of a tree root over a chain, before anything is written. @throws ArchiveError with any
 * reason
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

export interface BlockTask {
  archive: number;
  block: number;
  seal: { size: number; mac: Uint8Array };
  /** One bit for each entry, set if the entry is the newest version of its path. Null if every entry is the newest. */
  live: Uint8Array | null;
}

/**
 * Returns a form that is equal for all names that a folding file system may treat as equal (full case folding and
 * normalisation).
 */
export function foldName(name: ByteString): string {
  return textOfBytes(name).normalize('NFKD').toUpperCase().toLowerCase().normalize('NFKC');
}

/**
 * The names of one directory, as 64-bit hashes in a table with open addressing. A directory may have a million names,
 * so the table needs only 16 to 32 bytes for a name. In about 1 of 37 million directories with a million names, two
 * different names have equal hashes. Then a valid archive is refused, but nothing is lost.
 */
export class FoldedNames {
  private slots = new BigUint64Array(16);
  private count = 0;

  /** Adds a name. @throws ArchiveError `hostile_entry` when another name of the directory has the same folded form */
  add(name: ByteString): void {
    const hash = hashOf(foldName(name));
    if (!this.insert(hash))
      refuse('hostile_entry', `two names that the target file system does not tell apart: ${name}`);
    this.count += 1;
    if (this.count * 2 > this.slots.length) this.grow();
  }

  private insert(hash: bigint): boolean {
    const mask = this.slots.length - 1;
    for (let at = Number(hash & BigInt(mask)); ; at = (at + 1) & mask) {
      const found = this.slots[at];
      if (found === hash) return false;
      if (found === 0n) {
        this.slots[at] = hash;
        return true;
      }
    }
  }

  private grow(): void {
    const old = this.slots;
    this.slots = new BigUint64Array(old.length * 2);
    for (const hash of old) if (hash !== 0n) this.insert(hash);
  }
}

function hashOf(folded: string): bigint {
  const hash = createHash('sha256').update(folded).digest().readBigUInt64BE(0);
  return hash === 0n ? 1n : hash; // 0 marks an empty slot
}
