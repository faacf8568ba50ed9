import { chmodSync, lstatSync } from 'node:fs';
import { refuse } from '../format/archive-error';
import { decodeEntry, encodeEntry } from '../format/entry-codec';
import { describeStat } from '../pack/live-entry';
import { decodeAttributes, giveAccessLists, giveUserAttributes, type LostPart, readAttributes } from './attributes';
import { setPathTime } from './timestamps';

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
