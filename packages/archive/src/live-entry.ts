import type { BigIntStats } from 'node:fs';
import type { Entry, EntryType } from './entry';
import type { ByteString } from './path-bytes';

const nanosecondsPerSecond = 1_000_000_000n;

/** An entry of a path as it is on disk; content (size, SHA-256) and link are filled in by the caller. Set-id and sticky bits are not kept. */
export function describeStat(type: EntryType, path: ByteString, stat: BigIntStats): Entry {
  const nanoseconds = ((stat.mtimeNs % nanosecondsPerSecond) + nanosecondsPerSecond) % nanosecondsPerSecond;
  return {
    type,
    path,
    mode: Number(stat.mode & 0o777n),
    mtimeSeconds: Number((stat.mtimeNs - nanoseconds) / nanosecondsPerSecond),
    mtimeNanoseconds: Number(nanoseconds),
    size: 0,
    linked: false,
    sha256: noBytes,
    link: '',
  };
}

const noBytes = Buffer.alloc(0);
