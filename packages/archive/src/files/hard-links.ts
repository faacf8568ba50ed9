import type { BigIntStats } from 'node:fs';
import { refuse } from '../format/archive-error';
import { defaultLimits } from '../format/archive-limits';
import type { ByteString } from '../format/path-bytes';

/** Content that is packed again under further names. On disk it takes no space, so only this limits it. */
const copiedBytesMax = 64 * 2 ** 30;

interface FirstName {
  path: ByteString;
  namesLeft: bigint;
}

/**
 * The files with several names that have been packed, and the name under which each was packed. Past the number that
 * readers accept, further ones are packed as separate files: their content is kept, but not that they were one file.
 */
export class HardLinks {
  private readonly firstNames = new Map<string, FirstName>();
  private remembered = 0;
  private copiedBytes = 0;

  /** Whether other paths may become hard links to this file. */
  isLinked(stat: BigIntStats): boolean {
    return stat.nlink > 1n && (this.remembered < defaultLimits.linkedFilesMax || this.firstNames.has(inodeOf(stat)));
  }

  /**
   * To be called for each path whose file has several names and is packed as a separate file. It does not know which
   * name is the first, so each one counts for its share of the copies.
   * @throws ArchiveError `limit_exceeded`
   */
  countCopy({ size, nlink }: BigIntStats): void {
    this.copiedBytes += Number(size) * (1 - 1 / Number(nlink));
    if (this.copiedBytes > copiedBytesMax)
      refuse('limit_exceeded', `more than ${copiedBytesMax} bytes of files that have further names`);
  }

  /** The path under which this file has been packed already, or ''. */
  find(stat: BigIntStats): ByteString {
    return stat.nlink > 1n ? (this.firstNames.get(inodeOf(stat))?.path ?? '') : '';
  }

  /**
   * To be called for each packed path whose file has several names. Forgets a file once all its names have been seen.
   */
  remember(stat: BigIntStats, path: ByteString): void {
    const inode = inodeOf(stat);
    const first = this.firstNames.get(inode);
    if (first === undefined) {
      this.remembered += 1;
      this.firstNames.set(inode, { path, namesLeft: stat.nlink - 1n });
      return;
    }
    first.namesLeft -= 1n;
    if (first.namesLeft <= 0n) this.firstNames.delete(inode);
  }
}

function inodeOf(stat: BigIntStats): string {
  return `${stat.dev}:${stat.ino}`;
}
