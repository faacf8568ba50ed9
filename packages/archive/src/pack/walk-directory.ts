import { type BigIntStats, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { DeepPaths } from '../files/deep-paths';
import { refuse, systemErrorCode } from '../format/archive-error';
import { defaultLimits, formatBounds } from '../format/archive-limits';
import type { ByteString } from '../format/path-bytes';

export interface LivePath {
  /** The path in the tree. */
  path: ByteString;
  /** The path for file calls. This location is valid until the walk continues. */
  location: string | Buffer;
  stat: BigIntStats;
}

/**
 * Called for a path that is too long or too deep, which the walk leaves out. Also called for a directory that this
 * process may not read or search, whose content the walk leaves out.
 */
type OnUnreachable = (path: ByteString, reason: string) => void;

export const closedToUs = 'it is closed to the account that reads the files';

interface OpenDirectory {
  path: ByteString;
  names: ByteString[];
  next: number;
}

/**
 * Walks a directory in the order of comparePaths, without the directory itself. A path that disappears during the walk
 * is left out. A path may be as long and deep as the limits allow. Only the names of the directories above the current
 * path are in memory.
 * @throws ArchiveError `source_unreadable`
 */
export function* walkDirectory(directory: string, onUnreachable: OnUnreachable): Generator<LivePath> {
  const places = new DeepPaths(directory);
  const open: OpenDirectory[] = [{ path: '', names: readable(() => readNames(places, '')), next: 0 }];
  try {
    for (let top = open.at(-1); top !== undefined; top = open.at(-1)) {
      const name = top.names[top.next];
      top.next += 1;
      if (name === undefined) {
        open.pop();
        continue;
      }
      const path = top.path === '' ? name : `${top.path}/${name}`;
      if (path.length > formatBounds.pathBytes || open.length > defaultLimits.depthMax) {
        onUnreachable(path, 'path too long');
        continue;
      }
      const live = findPath(places, path);
      if (live === 'closed') {
        // The names of the directory can be read, but the directory cannot be searched.
        onUnreachable(top.path, closedToUs);
        open.pop();
        continue;
      }
      if (live === null) continue;
      yield live;
      if (!live.stat.isDirectory()) continue;
      const names = unlessClosed(() => readNames(places, path));
      if (names === 'closed') onUnreachable(path, closedToUs);
      else if (names !== null) open.push({ path, names, next: 0 });
    }
  } finally {
    places.close();
  }
}

function findPath(places: DeepPaths, path: ByteString): LivePath | 'closed' | null {
  const find = (): LivePath => {
    const location = places.at(path);
    return { path, location, stat: lstatSync(location, { bigint: true }) };
  };
  return path.includes('/') ? unlessClosed(find) : unlessGone(find);
}

const readNames = (places: DeepPaths, path: ByteString): ByteString[] =>
  readdirSync(places.at(path), { encoding: 'latin1' }).sort();

/** Returns the target of a symlink, or null if the path is no longer a symlink. */
export function readLinkTarget(location: string | Buffer): ByteString | null {
  return unlessGone(() => readlinkSync(location, { encoding: 'latin1' }));
}

/** Returns the result of a file call, or null if the path has disappeared or changed its type. */
export function unlessGone<Result>(call: () => Result): Result | null {
  try {
    return readable(call);
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (goneCodes.has(systemErrorCode(cause))) return null;
    throw error;
  }
}

/** Works like {@link unlessGone}, but returns `closed` for a path that this process may not read. */
export function unlessClosed<Result>(call: () => Result): Result | 'closed' | null {
  try {
    return unlessGone(call);
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (closedCodes.has(systemErrorCode(cause))) return 'closed';
    throw error;
  }
}

const closedCodes = new Set(['EACCES', 'EPERM']);

/** Error codes of a path that has disappeared or changed its type. */
const goneCodes = new Set(['ENOENT', 'ELOOP', 'ENOTDIR', 'EINVAL']);

function readable<Result>(call: () => Result): Result {
  try {
    return call();
  } catch (error) {
    return refuse('source_unreadable', String(error), error);
  }
}
