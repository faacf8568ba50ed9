import { refuse } from './archive-error';
import { formatBounds } from './archive-limits';
import type { ByteString } from './path-bytes';

/**
 * What is wrong with a path that is to be created below a directory, or null. Asked by the writer of what it finds and by the reader of what
 * it is told to create.
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
 * What is wrong with a symlink, or null. Allowed: `../` only in front and no more often than the link is deep, then plain names. So a link
 * stays in the tree even where the names lead over other links (`a/../..`, with `a` a link, does not stay where it seems to).
 */
export function symlinkProblem(path: ByteString, target: ByteString): string | null {
  if (target.length === 0 || target.length > formatBounds.linkBytes) return 'link target empty or too long';
  if (target.includes('\0')) return 'NUL in a link target';
  if (target.startsWith('/')) return 'absolute link target';
  let upwards = path.split('/').length - 1;
  let inFront = true;
  for (const name of target.split('/')) {
    if (name === '..') {
      upwards -= 1;
      if (!inFront || upwards < 0) return 'link leaves the tree';
    } else if (name !== '' && name !== '.') {
      inFront = false;
      if (name.length > formatBounds.nameBytes) return 'name over 255 bytes in a link target';
    }
  }
  return null;
}

/** @throws ArchiveError `hostile_entry` */
export function checkPath(path: ByteString, depthMax: number): void {
  const problem = pathProblem(path, depthMax);
  if (problem !== null) refuse('hostile_entry', `${problem}: ${path.slice(0, 200)}`);
}
