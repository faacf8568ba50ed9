import koffi from 'koffi';
import { type ByteString, bytesOfText } from '../format/path-bytes';

/*
 * Functions of the C library that Node lacks: FIFOs, extended attributes, and times to the nanosecond. Calls in this
 * process are used, because a child process for each file would cost more than the rest of a restore.
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
 * Null on a system without these calls. Times are then kept to the microsecond, and `pack` reports that it keeps no
 * attributes.
 */
export const libc: Libc | null = process.platform === 'linux' ? loadLibc() : null;

/** Loads the C library. @throws Error when koffi has no binary for this kind of machine */
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
 * Returns the error name of the last call, such as `ENOTSUP`. It must be read at once, because the next call overwrites
 * it.
 */
export function lastErrorCode(): string {
  const number = koffi.errno();
  return codeOfNumber.get(number) ?? `errno ${number}`;
}

const codeOfNumber = new Map(Object.entries(koffi.os.errno).map(([name, number]) => [number, name]));

/** Returns a path or name for the calls: its bytes with a closing NUL. */
export const cString = (bytes: ByteString): Buffer => Buffer.from(`${bytes}\0`, 'latin1');

/** Returns {@link cString} of a path for Node's file calls. */
export const cPath = (location: string | Buffer): Buffer =>
  cString(typeof location === 'string' ? bytesOfText(location) : location.toString('latin1'));
