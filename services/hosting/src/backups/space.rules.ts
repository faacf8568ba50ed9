import type { StoredArchive } from './backup.types';

/** File system blocks, index pages and write-ahead log over the bare bytes: a quarter, and room for a small site's database. */
const overheadFactor = 1.25;
const overheadBytes = 64 * 2 ** 20;

/** Bytes that a whole new release needs beside the live one while both stand. */
export const neededBytes = ({ rawBytes }: Pick<StoredArchive, 'rawBytes'>): number => Math.ceil(rawBytes * overheadFactor) + overheadBytes;

export const hasSpace = (neededBytesCount: number, freeBytes: number): boolean => freeBytes >= neededBytesCount;
