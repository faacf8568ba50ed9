import { futimesSync, lutimesSync } from 'node:fs';
import koffi from 'koffi';
import type { Entry } from '../format/entry';
import { type ByteString, bytesOfText } from '../format/path-bytes';

/*
 * Functions of the C library that Node lacks: FIFOs, extended attributes, and times to the nanosecond. They are called
 * in this process, because a child process for each file would take longer than the rest of a restore.
 */

export interface Libc {
  mkfifo(path: Buffer, mode: number): number;
  futimens(file: number, times: Buffer): number;
  utimensat(folder: number, path: Buffer, times: Buffer, flags: number): number;
  flistxattr(file: number, names: Buffer | null, size: number): number;
  fgetxattr(file: number, name: Buffer, value: Buffer, size: number): number;
  fsetxattr(file: number, name: Buffer, value: Buffer, size: number, flags: number): number;
  llistxattr(path: Buffer, names: Buffer | null, size: number): number;
  lgetxattr(path: Buffer, name: Buffer, value: Buffer, size: number): number;
  lsetxattr(path: Buffer, name: Buffer, value: Buffer, size: number, flags: number): number;
}

/**
 * Null on a system that is not Linux. Times are then kept to the microsecond, and `pack` reports that it keeps no
 * attributes.
 */
export const libc: Libc | null = process.platform === 'linux' ? loadLibc() : null;

function loadLibc(): Libc {
  const library = koffi.load(null);
  return {
    mkfifo: library.func('int mkfifo(void *, unsigned int)'),
    futimens: library.func('int futimens(int, void *)'),
    utimensat: library.func('int utimensat(int, void *, void *, int)'),
    flistxattr: library.func('long flistxattr(int, void *, size_t)'),
    fgetxattr: library.func('long fgetxattr(int, void *, void *, size_t)'),
    fsetxattr: library.func('int fsetxattr(int, void *, void *, size_t, int)'),
    llistxattr: library.func('long llistxattr(void *, void *, size_t)'),
    lgetxattr: library.func('long lgetxattr(void *, void *, void *, size_t)'),
    lsetxattr: library.func('int lsetxattr(void *, void *, void *, size_t, int)'),
  };
}

/**
 * Returns the error name of the last call, such as `ENOTSUP`. Call this function at once, because the next call
 * overwrites the error.
 */
export function lastErrorCode(): string {
  const number = koffi.errno();
  return codeOfNumber.get(number) ?? `errno ${number}`;
}

const codeOfNumber = new Map(Object.entries(koffi.os.errno).map(([name, number]) => [number, name]));

/** Returns a path or name as a C string: its bytes with a closing NUL. */
export const cString = (bytes: ByteString): Buffer => Buffer.from(`${bytes}\0`, 'latin1');

/** Converts a path from the form of Node's file calls (text or bytes) to the form of {@link cString}. */
export const cPath = (location: string | Buffer): Buffer =>
  cString(typeof location === 'string' ? bytesOfText(location) : location.toString('latin1'));

type Time = Pick<Entry, 'mtimeSeconds' | 'mtimeNanoseconds'>;

/** Sets the times of an open file: to the nanosecond on Linux, otherwise to the microsecond. */
export function setFileTime(file: number, time: Time): void {
  if (libc === null) futimesSync(file, secondsOf(time), secondsOf(time));
  else check(libc.futimens(file, timesOf(time)), 'futimens');
}

/** Sets the times of a path, as precisely as {@link setFileTime}. A link is not followed. */
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
 * Returns seconds with a fraction. A fraction gets half a microsecond more, because Node truncates to microseconds and
 * the double may be rounded down.
 */
function secondsOf(time: Time): number {
  const microseconds = Math.floor(time.mtimeNanoseconds / 1000);
  return microseconds === 0 ? time.mtimeSeconds : time.mtimeSeconds + (microseconds + 0.5) / 1e6;
}
