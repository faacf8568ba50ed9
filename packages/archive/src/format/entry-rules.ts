import { refuse } from './archive-error';
import { formatBounds } from './archive-limits';
import type { EntryType } from './entry';
import type { ByteString } from './path-bytes';

/**
 * Says why a path may not be created below a directory, or null when it may. The writer checks the paths that it finds,
 * and the reader checks the paths that an archive tells it to create.
 */
export function pathProblem(path: ByteString, depthMax: number): string | null {
  if (path.length === 0) return 'empty path';
  if (path.length > formatBounds.pathBytes) return 'path too long';
  if (path.includes('\0')) return 'NUL in a path';
  if (path.startsWith('/')) return 'absolute path';
  const names = path.split('/');
  if (names.length > depthMax) return `more than ${depthMax} directories deep`;
  for (const name of names) {
    if (name === '' || name === '.' || name === '..') return 'empty, . or .. in a path';
    if (name.length > formatBounds.nameBytes) return 'name over 255 bytes';
  }
  return null;
}

/**
 * Says why a symlink's target is refused, or null when it is allowed. The owner decides where a link leads. A link is
 * packed and restored as a link, and nothing is reached through one: no entry is below a link, links are created last,
 * and the server of a tree follows none that leaves it.
 */
export function symlinkProblem(target: ByteString): string | null {
  if (target.length === 0 || target.length > formatBounds.targetBytes) return 'link target empty or too long';
  return target.includes('\0') ? 'NUL in a link target' : null;
}

/**
 * The mode bits that are kept. Set-id bits give whoever runs a file the rights of its owner. After a restore the owner
 * is the account that the file was restored for, so this is no more than that account could give itself.
 */
export const keptModes: Readonly<Record<EntryType, number>> = {
  file: 0o7777,
  directory: 0o7777,
  fifo: 0o7777,
  symlink: 0o777,
  hardlink: 0o777,
  tombstone: 0o777,
};

/** @throws ArchiveError `hostile_entry` */
export function checkPath(path: ByteString, depthMax: number): void {
  const problem = pathProblem(path, depthMax);
  if (problem !== null) refuse('hostile_entry', `${problem}: ${path.slice(0, 200)}`);
}
