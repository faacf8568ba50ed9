import {
  type BigIntStats,
  closeSync,
  constants,
  fstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';
import path from 'node:path';
import { errorCodeOf } from '@drydock/process';

export type Resolved =
  | { kind: 'file'; fd: number; stats: BigIntStats; extension: string }
  /** A folder that was requested without a slash. */
  | { kind: 'folder'; location: string }
  | { kind: 'none' };

const none: Resolved = { kind: 'none' };

/**
 * The names in a request's path; null for a path that no site has: not decodable, `..`, hidden, or with characters that
 * only attackers send.
 */
export function segmentsOf(pathname: string): string[] | null {
  let decoded: string;
  try {
    decoded = decodeURIComponent(pathname);
  } catch {
    return null;
  }
  // biome-ignore lint/suspicious/noControlCharactersInRegex: refusing them is the point
  if (!decoded.startsWith('/') || /[\u0000-\u001f\u007f\\]/.test(decoded)) return null;
  const segments = decoded.split('/').filter((segment) => segment !== '');
  // An encoded slash would turn one name into two.
  if (/%2f/i.test(pathname)) return null;
  return segments.every((segment) => !segment.startsWith('.') || segment === '.well-known') ? segments : null;
}

const isWithin = (root: string, file: string): boolean => file === root || file.startsWith(`${root}${path.sep}`);

/**
 * The real path of an open file. On Linux the kernel tells it, whatever has happened to the path since; elsewhere the
 * path is resolved again.
 */
function placeOf(fd: number, file: string): string {
  return process.platform === 'linux' ? readlinkSync(`/proc/self/fd/${fd}`) : realpathSync.native(file);
}

/**
 * Finds and opens the file for a path below `root` (a real path). Links are followed only within the same release; any
 * other target counts as missing. The caller closes the descriptor.
 * The calls are synchronous: each takes a few microseconds on a local disk, ten times less than a way through Node's
 * threads. A slow disk delays only this site's process.
 */
export function resolveFile(root: string, pathname: string): Resolved {
  const segments = segmentsOf(pathname);
  if (segments === null) return none;
  try {
    const real = realpathSync.native(path.join(root, ...segments));
    if (!isWithin(root, real)) return none;
    if (!statSync(real).isDirectory()) return pathname.endsWith('/') ? none : openFile(root, real);
    if (!pathname.endsWith('/')) return { kind: 'folder', location: `/${segments.map(encodeURIComponent).join('/')}/` };
    const index = realpathSync.native(path.join(real, 'index.html'));
    return isWithin(root, index) ? openFile(root, index) : none;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES'].includes(errorCodeOf(error))) return none;
    throw error;
  }
}

function openFile(root: string, file: string): Resolved {
  // O_NONBLOCK does not wait for a FIFO's writer, and O_NOFOLLOW refuses a link that was put there since.
  const fd = openSync(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = fstatSync(fd, { bigint: true });
    if (stats.isFile() && isWithin(root, placeOf(fd, file)))
      return { kind: 'file', fd, stats, extension: path.extname(file).toLowerCase() };
  } catch (error) {
    closeSync(fd);
    throw error;
  }
  closeSync(fd);
  return none;
}
