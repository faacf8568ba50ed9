import type { StoredArchive } from './backup.types';

/**
 * File system blocks, index pages and write-ahead log take a quarter more than the bare bytes. A small site's database
 * takes a fixed amount besides.
 */
const overheadFactor = 1.25;
const overheadBytes = 64 * 2 ** 20;

/** Bytes that a whole new release needs beside the live one while both stand. */
export const neededBytes = ({ rawBytes }: Pick<StoredArchive, 'rawBytes'>): number =>
  Math.ceil(rawBytes * overheadFactor) + overheadBytes;

export const hasSpace = (neededBytesCount: number, freeBytes: number): boolean => freeBytes >= neededBytesCount;
