import {
  type BigIntStats,
  closeSync,
  constants,
  existsSync,
  fstatSync,
  openSync,
  readlinkSync,
  realpathSync,
  statSync,
} from 'node:fs';
import { mkdir, open } from 'node:fs/promises';
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
 * The real path of an open file. On Linux the kernel gives the path of the file itself, even if something else is at
 * the path by now. Elsewhere the path is resolved again.
 */
function placeOf(fd: number, file: string): string {
  return process.platform === 'linux' ? readlinkSync(`/proc/self/fd/${fd}`) : realpathSync.native(file);
}

/**
 * Finds and opens the file for a path below `root` (a real path). Links are followed only within the same release; any
 * other target counts as missing. The caller closes the descriptor. The calls are synchronous, because each takes a few
 * microseconds on a local disk, ten times less than through Node's threads. A slow disk delays only this site's
 * process.
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
  // O_NONBLOCK does not wait for a FIFO's writer. O_NOFOLLOW refuses a link that has replaced the file since the check.
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

const folderOf = (filesDir: string): string => path.join(filesDir, 'tmp');
const fileOf = (filesDir: string): string => path.join(folderOf(filesDir), 'restart.txt');

/**
 * The mtime of tmp/restart.txt in whole seconds, as Passenger compares it; 0 without the file. A process that was
 * started with another value must be restarted.
 */
export function readRestartSeconds(filesDir: string): number {
  try {
    return Math.floor((statSync(fileOf(filesDir), { throwIfNoEntry: false })?.mtimeMs ?? 0) / 1_000);
  } catch (error) {
    if (['ENOENT', 'ENOTDIR', 'ELOOP', 'EACCES'].includes(errorCodeOf(error))) return 0;
    throw error;
  }
}

/** Whether `always_restart.txt` exists. While it does, each request gets a fresh process, as with Passenger. */
export const restartsAlways = (filesDir: string): boolean =>
  existsSync(path.join(folderOf(filesDir), 'always_restart.txt'));

/**
 * O_NONBLOCK keeps `open` from waiting for a FIFO's reader. The reader may never come, and everybody who needs this
 * process would wait too.
 */
const writeFlags = constants.O_WRONLY | constants.O_CREAT | constants.O_NOFOLLOW | constants.O_NONBLOCK;
const blockingCodes = ['ENOTDIR', 'ELOOP', 'EISDIR', 'ENXIO', 'EACCES', 'EPERM'];

/**
 * Gives tmp/restart.txt a later mtime, because a change of the mtime restarts the application. Resolves with the new
 * mtime in seconds. Resolves with null if the customer's `tmp` is no ordinary folder, or the file is no ordinary file,
 * or one of them does not let the site write. The child has only the site's rights, so a link leads only to files that
 * the site may write.
 */
export async function touchRestartFile(filesDir: string, nowMs: number): Promise<number | null> {
  try {
    return await touch(filesDir, nowMs);
  } catch (error) {
    if (blockingCodes.includes(errorCodeOf(error))) return null;
    throw error;
  }
}

async function touch(filesDir: string, nowMs: number): Promise<number | null> {
  await mkdir(folderOf(filesDir), { mode: 0o755 }).catch((error: unknown) => {
    if (errorCodeOf(error) !== 'EEXIST') throw error;
  });
  const folder = await open(folderOf(filesDir), constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW);
  try {
    // The folder's descriptor is used where the platform allows it, because the folder may be replaced by a link
    // meanwhile.
    const held = process.platform === 'linux' ? `/proc/self/fd/${folder.fd}` : folderOf(filesDir);
    const file = await open(path.join(held, 'restart.txt'), writeFlags, 0o644);
    try {
      const found = await file.stat();
      // A file with a second name is refused, because the file would be touched under that name as well.
      if (!found.isFile() || found.nlink !== 1) return null;
      const before = Math.floor(found.mtimeMs / 1_000);
      const seconds = Math.max(Math.floor(nowMs / 1_000), before + 1);
      await file.utimes(seconds, seconds);
      await file.sync();
      const read = Math.floor((await file.stat()).mtimeMs / 1_000);
      if (read !== seconds) throw new Error(`tmp/restart.txt kept its mtime: ${read} where ${seconds} was written`);
      return seconds;
    } finally {
      await file.close();
    }
  } finally {
    await folder.close();
  }
}
