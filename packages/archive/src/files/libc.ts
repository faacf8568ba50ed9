import koffi from 'koffi';
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
