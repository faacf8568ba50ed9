import { refuse } from './archive-error';
import { formatBounds } from './archive-limits';
import type { ByteString } from './path-bytes';

/** Codes of the entry types. A tombstone means that a path of the parent chain was deleted. */
const entryTypes = { file: 1, directory: 2, symlink: 3, hardlink: 4, tombstone: 5, fifo: 6 } as const;
export type EntryType = keyof typeof entryTypes;

/** One path of a root. */
export interface Entry {
  type: EntryType;
  path: ByteString;
  /** Permission bits, and for files, directories and FIFOs the set-id and sticky bits. */
  mode: number;
  /** The modification time: seconds since 1970, which may be negative, and the nanoseconds of that second. */
  mtimeSeconds: number;
  mtimeNanoseconds: number;
  /** Bytes of content. 0 for an entry of any other type than a file. */
  size: number;
  /** True for a file, symlink or FIFO to which later hard links may refer. It had several names when it was packed. */
  linked: boolean;
  /** True for a file that took less space on disk than its size. A restore writes its blocks of zeros as holes. */
  sparse: boolean;
  /** SHA-256 of a file's content, otherwise empty. */
  sha256: Buffer;
  /** The target of a symlink, or the earlier path in the same root whose file a hard link shares. Otherwise ''. */
  link: ByteString;
  /** Encoded extended attributes and access lists of a file, directory or FIFO. */
  attributes: Buffer;
}

const noBytes = Buffer.alloc(0);

export function tombstoneOf(path: ByteString): Entry {
  return {
    type: 'tombstone',
    path,
    mode: 0,
    mtimeSeconds: 0,
    mtimeNanoseconds: 0,
    size: 0,
    linked: false,
    sparse: false,
    sha256: noBytes,
    link: '',
    attributes: noBytes,
  };
}

/**
 * Tells whether a path is unchanged since the parent archive, apart from its attributes. Of the content only size and
 * modification time (to the nanosecond) are compared.
 */
export function isUnchanged(live: Omit<Entry, 'sha256' | 'attributes'>, recorded: Entry): boolean {
  return (
    live.type === recorded.type &&
    live.size === recorded.size &&
    live.mode === recorded.mode &&
    live.mtimeSeconds === recorded.mtimeSeconds &&
    live.mtimeNanoseconds === recorded.mtimeNanoseconds &&
    live.linked === recorded.linked &&
    live.link === recorded.link
  );
}

/**
 * Returns why a path may not be created below a directory, or null if it may. The writer checks paths on disk, and the
 * reader checks paths in an archive.
 */
export function pathProblem(path: ByteString, depthMax: number): string | null {
  if (path.length === 0) return 'empty path';
  if (path.length > formatBounds.pathBytes) return 'path too long';
  if (path.includes('\0')) return 'NUL in a path';
  if (path.startsWith('/')) return 'absolute path';
  const names = path.split('/');
  if (names.length > depthMax) return `more than ${depthMax} directories deep`;
  for (const name of names) {
    if (name === '' || name === '.' || name === '..') return 'empty, . or .. in a path';
    if (name.length > formatBounds.nameBytes) return 'name over 255 bytes';
  }
  return null;
}

/**
 * Returns why a symlink's target is refused, or null if it is allowed. A target may be any path, because nothing leaves
 * the tree through the link: no entry is below a link, links are created last, and a site's server follows no link out
 * of the tree.
 */
export function symlinkProblem(target: ByteString): string | null {
  if (target.length === 0 || target.length > formatBounds.targetBytes) return 'link target empty or too long';
  return target.includes('\0') ? 'NUL in a link target' : null;
}

/**
 * The mode bits that an archive keeps. Set-id bits are safe: all files of an extraction belong to one account, so the
 * bits give only the rights of that account.
 */
export const keptModes: Readonly<Record<EntryType, number>> = {
  file: 0o7777,
  directory: 0o7777,
  fifo: 0o7777,
  symlink: 0o777,
  hardlink: 0o777,
  tombstone: 0o777,
};

/** Checks a path. @throws ArchiveError `hostile_entry` */
export function checkPath(path: ByteString, depthMax: number): void {
  const problem = pathProblem(path, depthMax);
  if (problem !== null) refuse('hostile_entry', `${problem}: ${path.slice(0, 200)}`);
}

const fixedBytes = 28;
const sha256Bytes = 32;
const typeOfCode = new Map<number, EntryType>(
  // Object.entries widens the names to string.
  Object.entries(entryTypes).map(([name, code]) => [code, name as EntryType]),
);
const flagBits = { linked: 1, sparse: 2 } as const;

/** Encodes an entry of an index block. README.md shows the format. */
export function encodeEntry(entry: Entry): Buffer {
  const sha256 = entry.type === 'file' ? sha256Bytes : 0;
  const attributesAt = fixedBytes + entry.path.length + entry.link.length + sha256;
  const bytes = Buffer.allocUnsafe(attributesAt + entry.attributes.length);
  bytes.writeUInt8(entryTypes[entry.type], 0);
  bytes.writeUInt8((entry.linked ? flagBits.linked : 0) | (entry.sparse ? flagBits.sparse : 0), 1);
  bytes.writeUInt16BE(entry.mode, 2);
  bytes.writeIntBE(entry.mtimeSeconds, 4, 6);
  bytes.writeUInt32BE(entry.mtimeNanoseconds, 10);
  bytes.writeUIntBE(entry.size, 14, 6);
  bytes.writeUInt16BE(entry.path.length, 20);
  bytes.writeUInt16BE(entry.link.length, 22);
  bytes.writeUInt32BE(entry.attributes.length, 24);
  bytes.write(entry.path, fixedBytes, 'latin1');
  bytes.write(entry.link, fixedBytes + entry.path.length, 'latin1');
  if (sha256 > 0) entry.sha256.copy(bytes, attributesAt - sha256Bytes);
  entry.attributes.copy(bytes, attributesAt);
  return bytes;
}

/**
 * Decodes the entry at `at` and returns the offset of the next entry. Only the form is checked here. The tree checker
 * decides which paths are allowed. @throws ArchiveError `mismatch`, or `hostile_entry` for a type, mode or length that
 * no writer produces
 */
export function decodeEntry(bytes: Buffer, at: number): { entry: Entry; next: number } {
  if (at + fixedBytes > bytes.length) refuse('mismatch', 'index entry cut short');
  const type = typeOfCode.get(bytes.readUInt8(at));
  if (type === undefined) refuse('hostile_entry', `entry of type ${bytes.readUInt8(at)}`);
  const flags = bytes.readUInt8(at + 1);
  const pathBytes = bytes.readUInt16BE(at + 20);
  const linkBytes = bytes.readUInt16BE(at + 22);
  const pathAt = at + fixedBytes;
  const linkAt = pathAt + pathBytes;
  const shaAt = linkAt + linkBytes;
  const attributesAt = shaAt + (type === 'file' ? sha256Bytes : 0);
  const next = attributesAt + bytes.readUInt32BE(at + 24);
  if (next > bytes.length) refuse('mismatch', 'index entry cut short');
  const entry: Entry = {
    type,
    path: bytes.toString('latin1', pathAt, linkAt),
    mode: bytes.readUInt16BE(at + 2),
    mtimeSeconds: bytes.readIntBE(at + 4, 6),
    mtimeNanoseconds: bytes.readUInt32BE(at + 10),
    size: bytes.readUIntBE(at + 14, 6),
    linked: (flags & flagBits.linked) !== 0,
    sparse: (flags & flagBits.sparse) !== 0,
    sha256: type === 'file' ? bytes.subarray(shaAt, attributesAt) : noBytes,
    link: linkBytes === 0 ? '' : bytes.toString('latin1', linkAt, shaAt),
    // The attributes are copied, because they are set on directories after the block's memory is released.
    attributes: attributesAt === next ? noBytes : Buffer.from(bytes.subarray(attributesAt, next)),
  };
  checkFields(entry, flags);
  return { entry, next };
}

const mayBeShared: ReadonlySet<EntryType> = new Set(['file', 'symlink', 'fifo']);
const mayHaveAttributes: ReadonlySet<EntryType> = new Set(['file', 'directory', 'fifo']);

function checkFields(entry: Entry, flags: number): void {
  if ((entry.mode & ~keptModes[entry.type]) !== 0)
    refuse('hostile_entry', `mode ${entry.mode.toString(8)} of a ${entry.type}`);
  if (flags > (flagBits.linked | flagBits.sparse) || entry.mtimeNanoseconds >= 1e9)
    refuse('mismatch', 'index entry with impossible fields');
  if (entry.type !== 'file' && (entry.size !== 0 || entry.sparse)) refuse('mismatch', `${entry.type} with content`);
  if (entry.linked && !mayBeShared.has(entry.type)) refuse('mismatch', `${entry.type} that hard links may share`);
  const hasAttributes = entry.attributes.length > 0;
  if (hasAttributes && !mayHaveAttributes.has(entry.type)) refuse('mismatch', `${entry.type} with attributes`);
  if (hasAttributes) decodeAttributes(entry.attributes);
  const isLink = entry.type === 'symlink' || entry.type === 'hardlink';
  if (isLink !== entry.link.length > 0)
    refuse('hostile_entry', `${entry.type} with a link target of ${entry.link.length} bytes`);
}

/** An extended attribute or an access list. The attributes of an entry are in ascending order of their names. */
export interface Attribute {
  name: ByteString;
  value: Buffer;
}

const accessList = 'system.posix_acl_access';
const defaultList = 'system.posix_acl_default';
/** Linux's limits for the name and the value of an attribute. */
const attributeNameBytesMax = 255;
export const attributeValueBytesMax = 65_536;
export const attributeHeadBytes = 6;

/**
 * Tells whether an archive keeps attributes with this name. Other attributes, such as file capabilities, could give
 * rights.
 */
export const isKeptAttribute = (name: ByteString): boolean =>
  name.startsWith('user.') || name === accessList || name === defaultList;

/** Encodes name length u16, value length u32, name, value. */
export function encodeAttribute(name: ByteString, content: Buffer): Buffer {
  const bytes = Buffer.allocUnsafe(attributeHeadBytes + name.length + content.length);
  bytes.writeUInt16BE(name.length, 0);
  bytes.writeUInt32BE(content.length, 2);
  bytes.write(name, attributeHeadBytes, 'latin1');
  content.copy(bytes, attributeHeadBytes + name.length);
  return bytes;
}

/**
 * Decodes attributes. Accepts only names that an archive keeps, because any other attribute could give rights. @throws
 * ArchiveError `mismatch`, or `hostile_entry` for a name, size or order that no writer records
 */
export function decodeAttributes(bytes: Buffer): Attribute[] {
  if (bytes.length > formatBounds.attributeBytes) refuse('hostile_entry', 'more attributes than any file has');
  const attributes: Attribute[] = [];
  for (let at = 0; at < bytes.length; ) {
    if (at + attributeHeadBytes > bytes.length) refuse('mismatch', 'attribute cut short');
    const nameAt = at + attributeHeadBytes;
    const valueAt = nameAt + bytes.readUInt16BE(at);
    const next = valueAt + bytes.readUInt32BE(at + 2);
    if (next > bytes.length) refuse('mismatch', 'attribute cut short');
    const name = bytes.toString('latin1', nameAt, valueAt);
    const isName =
      name.length <= attributeNameBytesMax &&
      !name.includes('\0') &&
      name.length > 'user.'.length &&
      isKeptAttribute(name);
    if (!isName || next - valueAt > attributeValueBytesMax) refuse('hostile_entry', `attribute ${name.slice(0, 100)}`);
    if ((attributes.at(-1)?.name ?? '') >= name) refuse('hostile_entry', `attribute out of order or twice: ${name}`);
    attributes.push({ name, value: bytes.subarray(valueAt, next) });
    at = next;
  }
  return attributes;
}
