import { type BigIntStats, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { DeepPaths } from '../files/deep-paths';
import { refuse, systemErrorCode } from '../format/archive-error';
import { defaultLimits, formatBounds } from '../format/archive-limits';
import type { ByteString } from '../format/path-bytes';

/** A path that existed when the walk reached it. */
export interface LivePath {
  /** The path in the tree. */
  path: ByteString;
  /** The path for file calls, valid until the walk continues. */
  location: string | Buffer;
  stat: BigIntStats;
}

/** Called for each path that exists but cannot be packed. Everything below the path is left out, too. */
type OnUnreachable = (path: ByteString, reason: string) => void;

export const closedToUs = 'its owner is another, and has closed it';

interface OpenDirectory {
  path: ByteString;
  names: ByteString[];
  next: number;
}

/**
 * Walks a directory in path order (see comparePaths), without the directory itself. What disappears during the walk is
 * left out. A path may be as long and as deep as the format allows. In memory are only the names of the open
 * directories. @throws ArchiveError `source_unreadable`
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

function findPath(places: DeepPaths, path: ByteString): LivePath | null {
  return unlessGone(() => {
    const location = places.at(path);
    return { path, location, stat: lstatSync(location, { bigint: true }) };
  });
}

const readNames = (places: DeepPaths, path: ByteString): ByteString[] =>
  readdirSync(places.at(path), { encoding: 'latin1' }).sort();

/** The target of a symlink, or null when it is gone or no longer a symlink. */
export function readLinkTarget(location: string | Buffer): ByteString | null {
  return unlessGone(() => readlinkSync(location, { encoding: 'latin1' }));
}

/** The result of a file call, or null when the path is no longer what the walk saw. */
export function unlessGone<Result>(call: () => Result): Result | null {
  try {
    return readable(call);
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (goneCodes.has(systemErrorCode(cause))) return null;
    throw error;
  }
}

/** Like {@link unlessGone}, and `closed` for a path that only another account may read. */
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

/** Gone, replaced by a link, replaced by something else. */
const goneCodes = new Set(['ENOENT', 'ELOOP', 'ENOTDIR', 'EINVAL']);

function readable<Result>(call: () => Result): Result {
  try {
    return call();
  } catch (error) {
    return refuse('source_unreadable', String(error), error);
  }
}
