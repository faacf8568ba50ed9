import { chmodSync, chownSync, lchownSync, linkSync, symlinkSync } from 'node:fs';
import { giveAccessLists, giveUserAttributes, lostParts } from '../files/attributes';
import { DeepPaths } from '../files/deep-paths';
import { cPath, libc } from '../files/libc';
import { setPathTime } from '../files/timestamps';
import type { Entry } from '../format/entry';
import { decodeAttributes } from '../format/entry-codec';
import { fileCallPath } from '../format/path-bytes';
import { mergeTree } from '../read/merge-tree';
import type { OpenArchive } from '../read/open-archive';
import type { Pace } from '../read/pace';
import type { LostPath, Owner } from './worker-messages';

export interface FinishOptions {
  directory: string;
  owner: Owner | null;
  pace: Pace;
  /** Called for each directory that the file system did not store completely. */
  onLost: (lost: LostPath) => void;
  signal?: AbortSignal;
}

/**
 * Creates the links and FIFOs of an extracted tree. Gives each directory its owner, mode and time once everything below
 * it is there. Only the open directories are kept in memory.
 */
export async function finishTree(
  archives: readonly OpenArchive[],
  root: string,
  options: FinishOptions,
): Promise<void> {
  const tree = new FinishedTree(options);
  try {
    for await (const batch of mergeTree(archives, root, options.signal)) {
      for (const { entry } of batch) {
        tree.take(entry);
        await options.pace();
      }
    }
    tree.finish();
  } finally {
    tree.close();
  }
}

class FinishedTree {
  private readonly options: FinishOptions;
  private readonly places: DeepPaths;
  /** The files that hard links share. They may be anywhere in the tree. */
  private readonly sharedPlaces: DeepPaths;
  private readonly open: Entry[] = [];

  constructor(options: FinishOptions) {
    this.options = options;
    this.places = new DeepPaths(options.directory);
    this.sharedPlaces = new DeepPaths(options.directory);
  }

  take(entry: Entry): void {
    for (
      let top = this.open.at(-1);
      top !== undefined && !entry.path.startsWith(`${top.path}/`);
      top = this.open.at(-1)
    ) {
      this.finishDirectory(top);
      this.open.pop();
    }
    if (entry.type === 'directory') this.open.push(entry);
    else if (entry.type !== 'file') this.makeLink(entry);
  }

  finish(): void {
    for (const directory of this.open.splice(0).reverse()) this.finishDirectory(directory);
  }

  close(): void {
    this.places.close();
    this.sharedPlaces.close();
  }

  private makeLink(entry: Entry): void {
    const { owner } = this.options;
    const location = this.places.at(entry.path);
    if (entry.type === 'hardlink') {
      linkSync(this.sharedPlaces.at(entry.link), location);
      return;
    }
    if (entry.type === 'fifo') {
      this.makeFifo(entry, location);
      return;
    }
    symlinkSync(fileCallPath(entry.link), location);
    if (owner !== null) lchownSync(location, owner.uid, owner.gid);
    setPathTime(location, entry);
  }

  private makeFifo(entry: Entry, location: string | Buffer): void {
    if (libc === null || libc.mkfifo(cPath(location), 0o600) !== 0)
      this.options.onLost({ path: entry.path, part: lostParts.noFifo });
    else this.givePath(entry, location);
  }

  private finishDirectory(entry: Entry): void {
    this.givePath(entry, this.places.at(entry.path));
  }

  /** Sets owner, attributes, mode and time of a path that was created without them. */
  private givePath(entry: Entry, location: string | Buffer): void {
    const { owner, onLost } = this.options;
    const attributes = decodeAttributes(entry.attributes);
    const lose = (part: LostPath['part']): void => onLost({ path: entry.path, part });
    if (owner !== null) chownSync(location, owner.uid, owner.gid);
    giveUserAttributes(location, attributes, lose);
    chmodSync(location, entry.mode);
    giveAccessLists(location, attributes, lose);
    setPathTime(location, entry);
  }
}
