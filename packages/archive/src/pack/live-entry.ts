import type { BigIntStats } from 'node:fs';
import type { Entry, EntryType } from '../format/entry';
import { keptModes } from '../format/entry-rules';
import type { ByteString } from '../format/path-bytes';

const nanosecondsPerSecond = 1_000_000_000n;

/**
 * The entry of a path as it is on disk. The caller fills in the content (size, SHA-256) and the link. Its mode has the
 * bits that its type keeps (`keptModes`).
 */
export function describeStat(type: EntryType, path: ByteString, stat: BigIntStats): Entry {
  const nanoseconds = ((stat.mtimeNs % nanosecondsPerSecond) + nanosecondsPerSecond) % nanosecondsPerSecond;
  return {
    type,
    path,
    mode: Number(stat.mode) & keptModes[type],
    mtimeSeconds: Number((stat.mtimeNs - nanoseconds) / nanosecondsPerSecond),
    mtimeNanoseconds: Number(nanoseconds),
    size: 0,
    linked: false,
    sparse: false,
    sha256: noBytes,
    link: '',
    attributes: noBytes,
  };
}

/**
 * Whether a file takes fewer blocks on disk than its size needs. Also true for files that the file system compresses,
 * for which it does no harm.
 */
export const isSparse = (stat: BigIntStats): boolean => stat.isFile() && stat.blocks * 512n < stat.size;

const noBytes = Buffer.alloc(0);
