import { type BigIntStats, chmodSync, lstatSync } from 'node:fs';
import { refuse } from '../format/archive-error';
import { formatBounds } from '../format/archive-limits';
import {
  type Attribute,
  attributeHeadBytes,
  attributeValueBytesMax,
  decodeAttributes,
  decodeEntry,
  type Entry,
  type EntryType,
  encodeAttribute,
  encodeEntry,
  isKeptAttribute,
  keptModes,
} from '../format/entry';
import type { ByteString } from '../format/path-bytes';
import { cPath, cString, lastErrorCode, libc, setPathTime } from './libc';

/*
 * Reads and sets the metadata of files and directories: mode, time, extended attributes and access lists (ACLs).
 * Linux stores access lists as attributes.
 */

/** An open file, or a path. A link at the end of the path is not followed. */
export type Holder = number | string | Buffer;

/**
 * The reasons why a path is incomplete in an archive or in a restored tree, for example without its attributes. Only
 * `noFifo` means that the restored tree lacks the path itself.
 */
export const lostParts = {
  accounts: 'its access list names other accounts, which were left out',
  capabilities: 'its file capabilities were left out',
  tooLarge: 'its extended attributes are larger than an archive takes and were left out',
  unreadable: 'its extended attributes could not be read and were left out',
  severalNames:
    'it shares its content with other paths, of which there are more than an archive remembers: ' +
    'it was kept as a file of its own',
  unsupported: 'extended attributes and access lists are not kept on this kind of system',
  noFifo: 'the file system did not take a FIFO',
  refused: 'the file system did not take its extended attributes or its access list',
} as const;
export type LostPart = (typeof lostParts)[keyof typeof lostParts];
type OnLost = (part: LostPart) => void;

const capabilities = 'security.capability';
/** The kernel's limit for the list of a file's attribute names. */
const listBytesMax = 65_536;

export const noAttributes = Buffer.alloc(0);
const names = Buffer.alloc(listBytesMax);
const value = Buffer.alloc(attributeValueBytesMax);

/** Reads and encodes the attributes that an archive keeps. */
export function readAttributes(holder: Holder, onLost: OnLost): Buffer {
  if (libc === null || listLength(holder) <= 0) return noAttributes;
  const length =
    typeof holder === 'number'
      ? libc.flistxattr(holder, names, names.length)
      : libc.llistxattr(cPath(holder), names, names.length);
  if (length < 0) {
    onLost(lostParts.unreadable);
    return noAttributes;
  }
  const listed = names.toString('latin1', 0, length).split('\0').sort();
  if (listed.includes(capabilities)) onLost(lostParts.capabilities);
  const parts: Buffer[] = [];
  let bytes = 0;
  for (const name of listed) {
    if (!isKeptAttribute(name)) continue;
    const read = readAttribute(holder, name, onLost);
    if (read === null) continue;
    bytes += attributeHeadBytes + name.length + read.length;
    if (bytes > formatBounds.attributeBytes) {
      onLost(lostParts.tooLarge);
      break;
    }
    parts.push(encodeAttribute(name, read));
  }
  return parts.length === 0 ? noAttributes : Buffer.concat(parts);
}

/**
 * Returns the length of the list of attribute names, or a negative number after an error. The caller treats an error
 * as an empty list, because a file system that supports no attributes answers with an error.
 */
function listLength(holder: Holder): number {
  if (libc === null) return 0;
  return typeof holder === 'number' ? libc.flistxattr(holder, null, 0) : libc.llistxattr(cPath(holder), null, 0);
}

function readAttribute(holder: Holder, name: ByteString, onLost: OnLost): Buffer | null {
  if (libc === null) return null;
  const length =
    typeof holder === 'number'
      ? libc.fgetxattr(holder, cString(name), value, value.length)
      : libc.lgetxattr(cPath(holder), cString(name), value, value.length);
  if (length < 0) {
    if (lastErrorCode() !== 'ENODATA') onLost(lostParts.unreadable);
    return null;
  }
  const read = Buffer.from(value.subarray(0, length));
  if (name.startsWith('user.')) return read;
  const own = withoutAccounts(read, (id) => id !== unknownId);
  if (own.length < read.length) onLost(lostParts.accounts);
  return own;
}

/**
 * Sets the `user.` attributes. Call this function before the mode is set, because the mode may remove this process's
 * right to write the file.
 */
export function giveUserAttributes(holder: Holder, attributes: readonly Attribute[], onLost: OnLost): void {
  for (const attribute of attributes)
    if (attribute.name.startsWith('user.') && !give(holder, attribute)) onLost(lostParts.refused);
}

/** Sets the access lists. Call this function after the mode is set, because chmod changes the access list. */
export function giveAccessLists(holder: Holder, attributes: readonly Attribute[], onLost: OnLost): void {
  for (const attribute of attributes) {
    if (attribute.name.startsWith('user.') || give(holder, attribute)) continue;
    const isUnknownAccount = libc !== null && lastErrorCode() === 'EINVAL';
    const ours = new Set([process.getuid?.(), process.getgid?.()]);
    const own = withoutAccounts(attribute.value, (id) => ours.has(id));
    const isGiven =
      isUnknownAccount && own.length < attribute.value.length && give(holder, { ...attribute, value: own });
    onLost(isGiven ? lostParts.accounts : lostParts.refused);
  }
}

function give(holder: Holder, attribute: Attribute): boolean {
  if (libc === null) return false;
  const [name, size] = [cString(attribute.name), attribute.value.length];
  const given =
    typeof holder === 'number'
      ? libc.fsetxattr(holder, name, attribute.value, size, 0)
      : libc.lsetxattr(cPath(holder), name, attribute.value, size, 0);
  return given === 0;
}

/** The kernel's format of an access list, little-endian: version u32, then for each row tag u16, rights u16, id u32. */
const listHeadBytes = 4;
const rowBytes = 8;
const tags = { user: 2, group: 8 } as const;
/** The kernel shows this number for an account that does not exist in the reader's user namespace. */
const unknownId = 0xffffffff;

/**
 * Removes the rows of unwanted accounts. The mask row stays, because without it the remaining rows would give more
 * rights.
 */
function withoutAccounts(list: Buffer, isWanted: (id: number) => boolean): Buffer {
  if (list.length < listHeadBytes || (list.length - listHeadBytes) % rowBytes !== 0) return list;
  const rows: Buffer[] = [list.subarray(0, listHeadBytes)];
  for (let at = listHeadBytes; at < list.length; at += rowBytes) {
    const tag = list.readUInt16LE(at);
    const isNamed = tag === tags.user || tag === tags.group;
    if (!isNamed || isWanted(list.readUInt32LE(at + 4))) rows.push(list.subarray(at, at + rowBytes));
  }
  return Buffer.concat(rows);
}

const nanosecondsPerSecond = 1_000_000_000n;

/**
 * Returns the entry of a path from its metadata. The caller adds content, link and attributes. The mode has only the
 * bits that the type keeps (`keptModes`).
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
    sha256: Buffer.alloc(0),
    link: '',
    attributes: noAttributes,
  };
}

/**
 * Tells whether a file has fewer blocks than its size needs. A compressed file also counts as sparse, which does no
 * harm.
 */
export const isSparse = (stat: BigIntStats): boolean => stat.isFile() && stat.blocks * 512n < stat.size;

/**
 * The path under which {@link describeFolder} encodes a directory. A tree root has the content of its directory, but
 * not the directory's own mode, time and attributes. A caller keeps these in a stream of the same archive.
 */
const itself = '.';

/** Encodes the metadata of a directory. Calls `onLost` for each part that is not kept. */
export function describeFolder(directory: string, onLost: (part: LostPart) => void): Buffer {
  const stat = lstatSync(directory, { bigint: true });
  return encodeEntry({ ...describeStat('directory', itself, stat), attributes: readAttributes(directory, onLost) });
}

/**
 * Gives a directory the metadata of {@link describeFolder}. Call this function last, because creating a file in the
 * directory changes the directory's time. @throws ArchiveError `mismatch` or `hostile_entry`
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
