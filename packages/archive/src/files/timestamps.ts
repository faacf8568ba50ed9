import { futimesSync, lutimesSync } from 'node:fs';
import type { Entry } from '../format/entry';
import { cPath, lastErrorCode, libc } from './libc';

type Time = Pick<Entry, 'mtimeSeconds' | 'mtimeNanoseconds'>;

/** Sets the time of an open file, to the nanosecond. */
export function setFileTime(file: number, time: Time): void {
  if (libc === null) futimesSync(file, secondsOf(time), secondsOf(time));
  else check(libc.futimens(file, timesOf(time)), 'futimens');
}

/** Sets the time of a path to the nanosecond. A link is not followed. */
export function setPathTime(location: string | Buffer, time: Time): void {
  if (libc === null) lutimesSync(location, secondsOf(time), secondsOf(time));
  else check(libc.utimensat(currentFolder, cPath(location), timesOf(time), noFollow), 'utimensat');
}

/** Linux's AT_FDCWD and AT_SYMLINK_NOFOLLOW. */
const currentFolder = -100;
const noFollow = 0x100;

/** Memory for two `struct timespec` (access and modification), which all calls share. */
const times = Buffer.alloc(32);

function timesOf({ mtimeSeconds, mtimeNanoseconds }: Time): Buffer {
  for (const at of [0, 16]) {
    times.writeIntLE(mtimeSeconds, at, 6);
    times.fill(mtimeSeconds < 0 ? 0xff : 0, at + 6, at + 8);
    times.writeUInt32LE(mtimeNanoseconds, at + 8);
  }
  return times;
}

function check(result: number, call: string): void {
  if (result === 0) return;
  const code = lastErrorCode();
  throw Object.assign(new Error(`${code}: ${call}`), { code });
}

/**
 * Returns seconds with a fraction. Half a microsecond is added, because Node truncates to microseconds and the double
 * may be rounded down.
 */
function secondsOf(time: Time): number {
  const microseconds = Math.floor(time.mtimeNanoseconds / 1000);
  return microseconds === 0 ? time.mtimeSeconds : time.mtimeSeconds + (microseconds + 0.5) / 1e6;
}
