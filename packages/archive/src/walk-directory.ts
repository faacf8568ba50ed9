import { type BigIntStats, lstatSync, readdirSync, readlinkSync } from 'node:fs';
import { refuse, systemErrorCode } from './archive-error';
import { type ByteString, bytesOfText, fileCallPath } from './path-bytes';

/** A path that was there when the walk came by. */
export interface LivePath {
  /** In the tree. */
  path: ByteString;
  /** For file calls. */
  location: string | Buffer;
  stat: BigIntStats;
}

/**
 * Walks a directory in path order (see comparePaths), the directory itself left out. What disappears while it is walked is left out too.
 * Memory: the names of the open directories.
 * @throws ArchiveError `source_unreadable`
 */
export function* walkDirectory(directory: string, onUnreachable: OnUnreachable): Generator<LivePath> {
  yield* walkBelow({ base: bytesOfText(directory), onUnreachable }, '');
}

/** Told of each path that is there and cannot be packed, with everything below it. */
type OnUnreachable = (path: ByteString, reason: string) => void;

/** Linux: 4096 with the closing NUL. */
const locationBytesMax = 4095;
export const closedToUs = 'its owner is another, and has closed it';

function* walkBelow(walk: { base: ByteString; onUnreachable: OnUnreachable }, path: ByteString): Generator<LivePath> {
  const { base, onUnreachable } = walk;
  const here = path === '' ? base : `${base}/${path}`;
  const names = readNames(here, path === '');
  if (names === 'closed') {
    onUnreachable(path, closedToUs);
    return;
  }
  for (const name of names) {
    const childPath = path === '' ? name : `${path}/${name}`;
    if (here.length + 1 + name.length > locationBytesMax) {
      onUnreachable(childPath, 'path too long');
      continue;
    }
    const location = fileCallPath(`${here}/${name}`);
    const stat = unlessGone(() => lstatSync(location, { bigint: true }));
    if (stat === null) continue;
    yield { path: childPath, location, stat };
    if (stat.isDirectory()) yield* walkBelow(walk, childPath);
  }
}

function readNames(location: ByteString, isRoot: boolean): ByteString[] | 'closed' {
  const read = (): ByteString[] => readdirSync(fileCallPath(location), { encoding: 'latin1' }).sort();
  if (isRoot) return readable(read);
  return unlessClosed(read) ?? [];
}

/** Target of a symlink, or null when it is gone or no symlink any more. */
export function readLinkTarget(location: string | Buffer): ByteString | null {
  return unlessGone(() => readlinkSync(location, { encoding: 'latin1' }));
}

/** Result of a file call; null when the path no longer is what the walk saw. */
export function unlessGone<Result>(call: () => Result): Result | null {
  try {
    return readable(call);
  } catch (error) {
    const cause = error instanceof Error ? error.cause : undefined;
    if (goneCodes.has(systemErrorCode(cause))) return null;
    throw error;
  }
}

/** As {@link unlessGone}, and `closed` for what only another account may read. */
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
