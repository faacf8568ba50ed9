import type { BigIntStats } from 'node:fs';
import type { Entry, EntryType } from '../format/entry';
import { keptModes } from '../format/entry-rules';
import type { ByteString } from '../format/path-bytes';

const nanosecondsPerSecond = 1_000_000_000n;

/** An entry of a path as it is on disk; content (size, SHA-256) and link are filled in by the caller. Bits of its mode are those that its type keeps (`keptModes`). */
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

/** Fewer blocks on disk than its size takes. Says yes to files that the file system compresses, too, which costs them nothing. */
export const isSparse = (stat: BigIntStats): boolean => stat.isFile() && stat.blocks * 512n < stat.size;

const noBytes = Buffer.alloc(0);
