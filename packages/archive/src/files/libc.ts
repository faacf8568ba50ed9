import { futimesSync, lutimesSync } from 'node:fs';
import koffi from 'koffi';
import type { Entry } from '../format/entry';
import { type ByteString, bytesOfText } from '../format/path-bytes';

/*
 * File calls of the C library for which Node has no function: FIFOs, extended attributes, and times to the nanosecond.
 * They are called in this process, because a child process for each file would cost more than everything else in a
 * restore.
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
 * Null on a system without these calls. Times are then kept to the microsecond, and `pack` reports that attributes are
 * not kept.
 */
export const libc: Libc | null = process.platform === 'linux' ? loadLibc() : null;

/** @throws Error when the library has no binary for this kind of machine */
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
 * The name of the error of the last call, such as `ENOTSUP`. To be read at once, because the next call overwrites it.
 */
export function lastErrorCode(): string {
  const number = koffi.errno();
  return codeOfNumber.get(number) ?? `errno ${number}`;
}

const codeOfNumber = new Map(Object.entries(koffi.os.errno).map(([name, number]) => [number, name]));

/** A path or a name as the calls take it: bytes that end with NUL. */
export const cString = (bytes: ByteString): Buffer => Buffer.from(`${bytes}\0`, 'latin1');

/** Like {@link cString}, for the paths that Node's file calls take. */
export const cPath = (location: string | Buffer): Buffer =>
  cString(typeof location === 'string' ? bytesOfText(location) : location.toString('latin1'));

type Time = Pick<Entry, 'mtimeSeconds' | 'mtimeNanoseconds'>;

/** Sets the time of an open file, to the nanosecond. */
export function setFileTime(file: number, time: Time): void {
  if (libc === null) futimesSync(file, secondsOf(time), secondsOf(time));
  else check(libc.futimens(file, timesOf(time)), 'futimens');
}

/** Sets the time of a path itself, to the nanosecond. A link is not followed. */
export function setPathTime(location: string | Buffer, time: Time): void {
  if (libc === null) lutimesSync(location, secondsOf(time), secondsOf(time));
  else check(libc.utimensat(currentFolder, cPath(location), timesOf(time), noFollow), 'utimensat');
}

/** AT_FDCWD and AT_SYMLINK_NOFOLLOW of Linux. */
const currentFolder = -100;
const noFollow = 0x100;

/** Memory for two `struct timespec`, for access and modification. Every call uses the same memory. */
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
 * Seconds with a fraction. Node keeps microseconds and cuts off the rest. Half a microsecond is added, so that the
 * rounding of the double never loses one.
 */
function secondsOf(time: Time): number {
  const microseconds = Math.floor(time.mtimeNanoseconds / 1000);
  return microseconds === 0 ? time.mtimeSeconds : time.mtimeSeconds + (microseconds + 0.5) / 1e6;
}
