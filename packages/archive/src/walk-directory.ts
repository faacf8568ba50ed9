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
export function* walkDirectory(directory: string): Generator<LivePath> {
  yield* walkBelow(bytesOfText(directory), '');
}

function* walkBelow(base: ByteString, path: ByteString): Generator<LivePath> {
  const here = path === '' ? base : `${base}/${path}`;
  for (const name of readNames(here, path === '')) {
    const childPath = path === '' ? name : `${path}/${name}`;
    const location = fileCallPath(`${here}/${name}`);
    const stat = unlessGone(() => lstatSync(location, { bigint: true }));
    if (stat === null) continue;
    yield { path: childPath, location, stat };
    if (stat.isDirectory()) yield* walkBelow(base, childPath);
  }
}

function readNames(location: ByteString, isRoot: boolean): ByteString[] {
  const read = (): ByteString[] => readdirSync(fileCallPath(location), { encoding: 'latin1' }).sort();
  if (isRoot) return readable(read);
  return unlessGone(read) ?? [];
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

/** Gone, replaced by a link, replaced by something else. */
const goneCodes = new Set(['ENOENT', 'ELOOP', 'ENOTDIR', 'EINVAL']);

function readable<Result>(call: () => Result): Result {
  try {
    return call();
  } catch (error) {
    return refuse('source_unreadable', String(error), error);
  }
}
