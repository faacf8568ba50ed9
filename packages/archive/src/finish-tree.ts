import { chmodSync, chownSync, lchownSync, linkSync, lutimesSync, symlinkSync, utimesSync } from 'node:fs';
import type { Entry } from './entry';
import { mergeTree } from './merge-tree';
import type { OpenArchive } from './open-archive';
import type { Pace } from './pace';
import { type ByteString, bytesOfText, fileCallPath } from './path-bytes';
import { secondsOf } from './timestamps';
import type { Owner } from './worker-messages';

export interface FinishOptions {
  directory: string;
  owner: Owner | null;
  pace: Pace;
  signal?: AbortSignal;
}

/**
 * Makes the links of an extracted tree, and gives each directory its owner, mode and time once everything below it is there. Only the open
 * directories are remembered.
 */
export async function finishTree(archives: readonly OpenArchive[], root: string, options: FinishOptions): Promise<void> {
  const base = `${bytesOfText(options.directory)}/`;
  const open: Entry[] = [];
  for await (const batch of mergeTree(archives, root, options.signal)) {
    for (const { entry } of batch) {
      for (let top = open.at(-1); top !== undefined && !entry.path.startsWith(`${top.path}/`); top = open.at(-1)) {
        finishDirectory(base, top, options.owner);
        open.pop();
      }
      if (entry.type === 'directory') open.push(entry);
      else if (entry.type !== 'file') makeLink(base, entry, options.owner);
      await options.pace();
    }
  }
  for (const directory of open.reverse()) finishDirectory(base, directory, options.owner);
}

function makeLink(base: ByteString, entry: Entry, owner: Owner | null): void {
  const location = fileCallPath(base + entry.path);
  if (entry.type === 'hardlink') {
    linkSync(fileCallPath(base + entry.link), location);
    return;
  }
  symlinkSync(fileCallPath(entry.link), location);
  if (owner !== null) lchownSync(location, owner.uid, owner.gid);
  lutimesSync(location, secondsOf(entry), secondsOf(entry));
}

function finishDirectory(base: ByteString, entry: Entry, owner: Owner | null): void {
  const location = fileCallPath(base + entry.path);
  if (owner !== null) chownSync(location, owner.uid, owner.gid);
  chmodSync(location, entry.mode);
  utimesSync(location, secondsOf(entry), secondsOf(entry));
}
