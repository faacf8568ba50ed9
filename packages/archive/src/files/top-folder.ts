import { type BigIntStats, chmodSync, lstatSync } from 'node:fs';
import { refuse } from '../format/archive-error';
import { decodeAttributes, decodeEntry, type Entry, type EntryType, encodeEntry, keptModes } from '../format/entry';
import type { ByteString } from '../format/path-bytes';
import { giveAccessLists, giveUserAttributes, type LostPart, readAttributes } from './attributes';
import { setPathTime } from './libc';

const nanosecondsPerSecond = 1_000_000_000n;

/**
 * The entry of a path as it is on disk. The caller fills in the content (size, SHA-256) and the link. Its mode has the
 * bits that its type keeps (`keptModes`).
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
 * Whether a file takes fewer blocks on disk than its size needs. Also true for files that the file system compresses,
 * for which it does no harm.
 */
export const isSparse = (stat: BigIntStats): boolean => stat.isFile() && stat.blocks * 512n < stat.size;

const noBytes = Buffer.alloc(0);

/*
 * The directory of a tree root itself, which the tree does not hold: its mode, time, attributes and access lists. A
 * caller who wants to restore them keeps these bytes in a stream of the same archive.
 */

const itself = '.';

/** `onLost`: called for each part of the folder that is not kept. */
export function describeFolder(directory: string, onLost: (part: LostPart) => void): Buffer {
  const stat = lstatSync(directory, { bigint: true });
  return encodeEntry({ ...describeStat('directory', itself, stat), attributes: readAttributes(directory, onLost) });
}

/**
 * Gives a directory what {@link describeFolder} has described. To be called last, because whatever is created in the
 * directory afterwards changes its time. @throws ArchiveError `mismatch` or `hostile_entry`
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
