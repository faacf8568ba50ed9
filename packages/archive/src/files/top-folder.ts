import { type BigIntStats, chmodSync, lstatSync } from 'node:fs';
import { refuse } from '../format/archive-error';
import { decodeAttributes, decodeEntry, type Entry, type EntryType, encodeEntry, keptModes } from '../format/entry';
import type { ByteString } from '../format/path-bytes';
import { giveAccessLists, giveUserAttributes, type LostPart, readAttributes } from './attributes';
import { setPathTime } from './libc';

const nanosecondsPerSecond = 1_000_000_000n;

/**
 * Returns the entry of a path from its metadata. The caller adds content and link. The mode has only the bits that the
 * type keeps (`keptModes`).
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
 * Tells whether a file has fewer blocks than its size needs. A compressed file also counts as sparse, which does no
 * harm.
 */
export const isSparse = (stat: BigIntStats): boolean => stat.isFile() && stat.blocks * 512n < stat.size;

const noBytes = Buffer.alloc(0);

/**
 * The path under which {@link describeFolder} encodes a directory. A tree root does not contain its own directory. So a
 * caller keeps that directory's mode, time and attributes in a stream of the same archive.
 */
const itself = '.';

/** Encodes the metadata of a directory. Calls `onLost` for each part that is not kept. */
export function describeFolder(directory: string, onLost: (part: LostPart) => void): Buffer {
  const stat = lstatSync(directory, { bigint: true });
  return encodeEntry({ ...describeStat('directory', itself, stat), attributes: readAttributes(directory, onLost) });
}

/**
 * Gives a directory the metadata of {@link describeFolder}. Call this function last, because creating a file in the
 * directory changes its time. @throws ArchiveError `mismatch` or `hostile_entry`
 */
export function restoreFolder(directory: string, described: Buffer, onLost: (part: LostPart) => void): void {
  const { entry, next } = decodeEntry(described, 0);
  if (entry.type !== 'directory' || entry.path !== itself || next !== described.length)
    refuse('mismatch', 'not the description of a folder');
  const attributes = decodeAttributes(entry.attributes);
  giveUserAttributes(directory, attributes, onLost);
  chmodSync(directory, entry.mode);
  giveAccessLists(directory, attributes, onLost);
  setPathTime(directory, entry);
}
