import { refuse } from './archive-error';
import { formatBounds } from './archive-limits';
import type { EntryType } from './entry';
import type { ByteString } from './path-bytes';

/**
 * Returns why a path may not be created below a directory, or null if it may. The writer checks paths on disk, and the
 * reader checks paths in an archive.
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
 * Returns why a symlink's target is refused, or null if it is allowed. A target may be any path, because nothing
 * follows the link: no entry is below a link, links are created last, and a site's server follows no link out of the
 * tree.
 */
export function symlinkProblem(target: ByteString): string | null {
  if (target.length === 0 || target.length > formatBounds.targetBytes) return 'link target empty or too long';
  return target.includes('\0') ? 'NUL in a link target' : null;
}

/**
 * The mode bits that an archive keeps. Set-id bits are safe: after a restore the file belongs to the account that
 * requested it, and the bits give only that account's rights.
 */
export const keptModes: Readonly<Record<EntryType, number>> = {
  file: 0o7777,
  directory: 0o7777,
  fifo: 0o7777,
  symlink: 0o777,
  hardlink: 0o777,
  tombstone: 0o777,
};

/** Checks a path. @throws ArchiveError `hostile_entry` */
export function checkPath(path: ByteString, depthMax: number): void {
  const problem = pathProblem(path, depthMax);
  if (problem !== null) refuse('hostile_entry', `${problem}: ${path.slice(0, 200)}`);
}
