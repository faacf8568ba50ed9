import { type BigIntStats, closeSync, constants, fstatSync, openSync, readlinkSync, realpathSync, statSync } from 'node:fs';
import path from 'node:path';
import { errorCodeOf } from '@drydock/process/error-code';

export type Resolved =
  | { kind: 'file'; fd: number; stats: BigIntStats; extension: string }
  /** A folder that was asked for without its slash. */
  | { kind: 'folder'; location: string }
  | { kind: 'none' };

const none: Resolved = { kind: 'none' };

/** The names of a request's path, or null for one that no site has: not decodable, `..`, hidden, or with characters that only attackers send. */
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
  // An encoded slash would make one name into two.
  if (/%2f/i.test(pathname)) return null;
  return segments.every((segment) => !segment.startsWith('.') || segment === '.well-known') ? segments : null;
}

const isWithin = (root: string, file: string): boolean => file === root || file.startsWith(`${root}${path.sep}`);

/** Where an open file really lies. On Linux the kernel says, whatever became of the path in between; elsewhere the path is followed again. */
function placeOf(fd: number, file: string): string {
  return process.platform === 'linux' ? readlinkSync(`/proc/self/fd/${fd}`) : realpathSync.native(file);
}

/**
 * Finds and opens what a path asks for below `root` (a real path). Links are followed only to what lies in the same release;
 * anything else is as if it were not there. The caller closes the descriptor.
 *
 * The calls are synchronous: each takes a few microseconds on a local disk, where a way through Node's threads takes ten times that. A disk that
 * is slow keeps this site's process waiting, and no other.
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
  // Without waiting for a FIFO's writer, and not through a link that was put there since.
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
