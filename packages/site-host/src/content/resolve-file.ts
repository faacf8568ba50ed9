import { type BigIntStats, constants } from 'node:fs';
import { type FileHandle, open, readlink, realpath, stat } from 'node:fs/promises';
import path from 'node:path';
import { errorCodeOf } from '@drydock/host-kit/error-code';

export type Resolved =
  | { kind: 'file'; handle: FileHandle; stats: BigIntStats; extension: string }
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
async function placeOf(handle: FileHandle, file: string): Promise<string> {
  return process.platform === 'linux' ? readlink(`/proc/self/fd/${handle.fd}`) : realpath(file);
}

/**
 * Finds and opens what a path asks for below `root` (a real path). Links are followed only to what lies in the same release;
 * anything else is as if it were not there. The caller closes the handle.
 */
export async function resolveFile(root: string, pathname: string): Promise<Resolved> {
  const segments = segmentsOf(pathname);
  if (segments === null) return none;
  try {
    const real = await realpath(path.join(root, ...segments));
    if (!isWithin(root, real)) return none;
    if (!(await stat(real)).isDirectory()) return pathname.endsWith('/') ? none : await openFile(root, real);
    if (!pathname.endsWith('/')) return { kind: 'folder', location: `/${segments.map(encodeURIComponent).join('/')}/` };
    const index = await realpath(path.join(real, 'index.html'));
    return isWithin(root, index) ? await openFile(root, index) : none;
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'ENAMETOOLONG', 'EACCES'].includes(errorCodeOf(error))) return none;
    throw error;
  }
}

async function openFile(root: string, file: string): Promise<Resolved> {
  // Without waiting for a FIFO's writer, and not through a link that was put there since.
  const handle = await open(file, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK);
  try {
    const stats = await handle.stat({ bigint: true });
    if (stats.isFile() && isWithin(root, await placeOf(handle, file))) {
      return { kind: 'file', handle, stats, extension: path.extname(file).toLowerCase() };
    }
  } catch (error) {
    await handle.close();
    throw error;
  }
  await handle.close();
  return none;
}
