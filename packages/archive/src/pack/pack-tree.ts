import { createHash, hash } from 'node:crypto';
import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { posix } from 'node:path';
import { libc } from '../files/libc';
import { describeStat, isSparse, type LostPart, lostParts, readAttributes } from '../files/metadata';
import { refuse } from '../format/archive-error';
import { defaultLimits, formatBounds } from '../format/archive-limits';
import { type Entry, isUnchanged, pathProblem, symlinkProblem, tombstoneOf } from '../format/entry';
import type { RootTally } from '../format/manifest';
import { type ByteString, textOfBytes } from '../format/path-bytes';
import type { ParentTree } from '../read/merge-tree';
import type { Pace } from '../read/pace';
import type { BlockWriter } from './block-writer';
import { changedWhileRead, linkIntoRelease, type SkippedPath } from './pack-roots';
import { closedToUs, type LivePath, readLinkTarget, unlessClosed, walkDirectory } from './walk-directory';

/**
 * The most bytes of surplus copies, which are packed because a file has several names. The copies take no space on the
 * site's disk, so the size of the disk does not limit them.
 */
const copiedBytesMax = 64 * 2 ** 30;

interface FirstName {
  path: ByteString;
  namesLeft: bigint;
}

/**
 * Remembers the packed files with several names, and the name of each in the archive. Readers accept a limited number
 * of files with several names. Beyond that number, each name is packed as a separate file with its own copy of the
 * content.
 */
class HardLinks {
  private readonly firstNames = new Map<string, FirstName>();
  private remembered = 0;
  private copiedBytes = 0;

  /** Tells whether other paths may become hard links to this file. */
  isLinked(stat: BigIntStats): boolean {
    return stat.nlink > 1n && (this.remembered < defaultLimits.linkedFilesMax || this.firstNames.has(inodeOf(stat)));
  }

  /**
   * Counts a path that is packed as a separate copy although its file has `nlink` names. One copy of the file is not
   * surplus, so each of n names counts for (n - 1) / n of the size. @throws ArchiveError `limit_exceeded`
   */
  countCopy({ size, nlink }: BigIntStats): void {
    this.copiedBytes += Number(size) * (1 - 1 / Number(nlink));
    if (this.copiedBytes > copiedBytesMax)
      refuse('limit_exceeded', `more than ${copiedBytesMax} bytes of files that have further names`);
  }

  /** Returns the path under which this file was packed, or ''. */
  find(stat: BigIntStats): ByteString {
    return stat.nlink > 1n ? (this.firstNames.get(inodeOf(stat))?.path ?? '') : '';
  }

  /** Records a packed path whose file has several names. The file is forgotten when all its names have been seen. */
  remember(stat: BigIntStats, path: ByteString): void {
    const inode = inodeOf(stat);
    const first = this.firstNames.get(inode);
    if (first === undefined) {
      this.remembered += 1;
      this.firstNames.set(inode, { path, namesLeft: stat.nlink - 1n });
      return;
    }
    first.namesLeft -= 1n;
    if (first.namesLeft <= 0n) this.firstNames.delete(inode);
  }
}

function inodeOf(stat: BigIntStats): string {
  return `${stat.dev}:${stat.ino}`;
}

interface TreePacking {
  directory: string;
  /** See {@link directoryRoot}. */
  releases?: string | undefined;
  writer: BlockWriter;
  tally: RootTally;
  /** Counts the paths that are left to the parent because they have not changed. */
  unchanged: RootTally;
  /** The tree of the parent chain, or null for a full archive. */
  parent: ParentTree | null;
  /** The time at which the parent archive was made. It is not used for a full archive. */
  parentCreatedAt: Date;
  pace: Pace;
  onSkip: (skipped: SkippedPath) => void;
}

/**
 * Packs a directory: everything, or the differences from the parent, with tombstones for deleted paths. The walk of the
 * directory and the parent's index are merged as sorted streams.
 */
export async function packTree(packing: TreePacking): Promise<void> {
  const hardLinks = new HardLinks();
  if (libc === null) skip(packing, '.', lostParts.unsupported);
  const onUnreachable = (path: ByteString, reason: string): void => void skip(packing, path, reason);
  for (const live of walkDirectory(packing.directory, onUnreachable)) {
    await packing.pace();
    const recorded = (await packing.parent?.takeUpTo(live.path, (path) => bury(packing, path))) ?? null;
    const packed = await packPath(packing, hardLinks, live, recorded);
    if (packed === 'absent' && recorded !== null) await bury(packing, live.path);
  }
  await packing.parent?.takeRest((path) => bury(packing, path));
}

async function bury(packing: TreePacking, path: ByteString): Promise<void> {
  await addEntry(packing, tombstoneOf(path));
}

/** Packs one path. Returns `absent` if the path is left out, so that a version in the parent gets a tombstone. */
async function packPath(
  packing: TreePacking,
  hardLinks: HardLinks,
  live: LivePath,
  recorded: Entry | null,
): Promise<'present' | 'absent'> {
  const found = describeLive(packing, hardLinks, live);
  if (found === null) return 'absent';
  const rememberName = (): void => {
    if (found.linked || found.type === 'hardlink') hardLinks.remember(live.stat, live.path);
  };
  if (recorded !== null && (await isAsRecorded(packing, { live, found, recorded }))) {
    rememberName();
    packing.unchanged.count(recorded);
    return 'present';
  }
  if (found.type !== 'file') {
    await addEntry(packing, found);
    rememberName();
    return 'present';
  }
  const content = await packFile(live, packing, (part) => skip(packing, live.path, part));
  if (content === null) return 'absent';
  if (content === 'closed') {
    skip(packing, live.path, closedToUs);
    return 'absent';
  }
  const { stat, size, sha256, attributes, hasChanged } = content;
  // The path is reported, because its packed content may mix several moments of the file.
  if (hasChanged) skip(packing, live.path, changedWhileRead);
  const linked = hardLinks.isLinked(stat);
  await addEntry(packing, {
    ...describeStat('file', live.path, stat),
    size,
    sha256,
    linked,
    sparse: isSparse(stat),
    attributes,
  });
  if (linked) hardLinks.remember(stat, live.path);
  return 'present';
}

/**
 * Returns the entry of a path without a file's content, SHA-256 and attributes. Returns null for a path that is left
 * out: a link that has disappeared, a socket, a device, or a path that a restore would refuse.
 */
function describeLive(packing: TreePacking, hardLinks: HardLinks, live: LivePath): Entry | null {
  const { path, stat } = live;
  const problem = pathProblem(path, defaultLimits.depthMax);
  if (problem !== null) return skip(packing, path, problem);
  if (stat.isDirectory()) return describeDirectory(packing, live);
  const first = hardLinks.find(stat);
  if (first !== '') return { ...describeStat('hardlink', path, stat), link: first };
  const linked = hardLinks.isLinked(stat);
  if (!linked && stat.nlink > 1n) {
    skip(packing, path, lostParts.severalNames);
    if (stat.isFile()) hardLinks.countCopy(stat);
  }
  if (stat.isSymbolicLink()) return describeSymlink(packing, live, linked);
  if (stat.isFIFO()) return { ...describeStat('fifo', path, stat), linked, attributes: attributesOf(packing, live) };
  if (!stat.isFile()) return skip(packing, path, 'a socket or a device');
  return { ...describeStat('file', path, stat), size: Number(stat.size), linked };
}

const describeDirectory = (packing: TreePacking, live: LivePath): Entry => ({
  ...describeStat('directory', live.path, live.stat),
  attributes: attributesOf(packing, live),
});

const attributesOf = (packing: TreePacking, { path, location }: LivePath): Buffer =>
  readAttributes(location, (part) => skip(packing, path, part));

interface Compared {
  live: LivePath;
  found: Entry;
  recorded: Entry;
}

const isAsRecorded = async (packing: TreePacking, compared: Compared): Promise<boolean> =>
  isUnchanged(compared.found, compared.recorded) &&
  (await hasContent(packing, compared)) &&
  hasAttributes(packing, compared);

/**
 * The most milliseconds by which two clocks may differ: the clock of the files' host, and the clock that gave the
 * parent archive its time.
 */
const clockSkewMs = 600_000;

/**
 * Tells whether a file with the recorded size and modification time still has the recorded content. Tools that unpack
 * artifacts give new content the old time. No tool can set the inode's change time. So the content is read only if that
 * time is later than the parent's time less `clockSkewMs`. A change after this reading is found in the same way by the
 * next increment.
 */
async function hasContent(
  { parentCreatedAt, pace }: TreePacking,
  { live, found, recorded }: Compared,
): Promise<boolean> {
  if (found.type !== 'file') return true;
  if (live.stat.ctimeNs < BigInt(parentCreatedAt.getTime() - clockSkewMs) * 1_000_000n) return true;
  const file = openFile(live);
  if (file === null || file === 'closed') return false;
  try {
    const digest = createHash('sha256');
    const piece = Buffer.allocUnsafe(Math.min(recorded.size, 2 ** 20));
    for (let at = 0; at < recorded.size; ) {
      const content = readUpTo(file, piece.subarray(0, recorded.size - at), at);
      if (content.length === 0) return false;
      digest.update(content);
      at += content.length;
      await pace();
    }
    return digest.digest().equals(recorded.sha256);
  } finally {
    closeSync(file);
  }
}

/**
 * Tells whether an otherwise unchanged path still has the recorded attributes. They are compared, because a change of
 * attributes does not change the modification time.
 */
function hasAttributes(packing: TreePacking, { live, found, recorded }: Compared): boolean {
  if (found.type !== 'file') return found.attributes.equals(recorded.attributes);
  const lost: LostPart[] = [];
  if (!readAttributes(live.location, (part) => lost.push(part)).equals(recorded.attributes)) return false;
  for (const part of lost) skip(packing, live.path, part);
  return true;
}

function describeSymlink(packing: TreePacking, live: LivePath, linked: boolean): Entry | null {
  const target = readLinkTarget(live.location);
  if (target === null) return null;
  const problem = symlinkProblem(target);
  if (problem !== null) return skip(packing, live.path, problem);
  if (leadsInto(packing.releases, target)) skip(packing, live.path, linkIntoRelease);
  return { ...describeStat('symlink', live.path, live.stat), linked, link: target };
}

/** Tells whether a link's text leads into the folder. The link itself is not followed. */
function leadsInto(folder: string | undefined, target: ByteString): boolean {
  if (folder === undefined || !target.startsWith('/')) return false;
  const written = posix.normalize(textOfBytes(target));
  return written.startsWith(`${folder}/`) && written.length > folder.length + 1;
}

/** Reports a path. Returns null, so that a caller that leaves the path out can return the result. */
function skip(packing: TreePacking, path: ByteString, reason: string): null {
  packing.onSkip({ path: textOfBytes(path), reason });
  return null;
}

async function addEntry(packing: TreePacking, entry: Entry): Promise<void> {
  packing.tally.count(entry);
  await packing.writer.add(entry);
}

/**
 * The most readings of a file that changes while it is read. The content of the last reading is recorded even if the
 * file has changed again.
 */
const attemptsMax = 3;

export interface PackedContent {
  /**
   * The state of the file before the last reading. If the file changed after that, the next incremental archive finds
   * another time or size.
   */
  stat: BigIntStats;
  size: number;
  sha256: Buffer;
  /** True if the file changed during every reading, so that the content may mix several moments. */
  hasChanged: boolean;
  attributes: Buffer;
}

/**
 * Opens a file for reading. Returns null if the path is no longer a file, and `closed` if this process may not read it.
 */
function openFile({ location }: LivePath): number | 'closed' | null {
  // O_NONBLOCK is set, because opening a FIFO that has replaced the file would block the whole process.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = unlessClosed(() => openSync(location, flags));
  if (typeof file !== 'number' || fstatSync(file).isFile()) return file;
  closeSync(file);
  return null;
}

/**
 * Appends a file's content to the archive. Size and SHA-256 are computed from the appended bytes. Returns null if the
 * path is no longer a file, and `closed` if this process may not read it.
 */
async function packFile(
  live: LivePath,
  { writer, pace }: { writer: BlockWriter; pace: Pace },
  onLost: (part: LostPart) => void,
): Promise<PackedContent | 'closed' | null> {
  const file = openFile(live);
  if (file === null || file === 'closed') return file;
  try {
    const stat = fstatSync(file, { bigint: true });
    const isSmall = stat.size <= BigInt(formatBounds.segmentRawBytes);
    const content = await (isSmall ? packSmall(file, writer) : packLarge(file, writer, pace));
    return { ...content, attributes: readAttributes(file, onLost) };
  } finally {
    closeSync(file);
  }
}

type FileContent = Omit<PackedContent, 'attributes'>;

async function packSmall(file: number, writer: BlockWriter): Promise<FileContent> {
  for (let attempt = 1; ; attempt += 1) {
    const stat = fstatSync(file, { bigint: true });
    const size = Math.min(Number(stat.size), formatBounds.segmentRawBytes);
    const room = await writer.room();
    const direct = size <= room.length;
    const content = readUpTo(file, direct ? room.subarray(0, size) : Buffer.allocUnsafeSlow(size), 0);
    const isChanged = hasChanged(file, stat, content.length);
    if (attempt < attemptsMax && isChanged) continue;
    if (direct) writer.commit(content.length);
    else await writer.append(content);
    return { stat, size: content.length, sha256: hash('sha256', content, 'buffer'), hasChanged: isChanged };
  }
}

async function packLarge(file: number, writer: BlockWriter, pace: Pace): Promise<FileContent> {
  await writer.closeBlock();
  for (let attempt = 1; ; attempt += 1) {
    const stat = fstatSync(file, { bigint: true });
    const { size, sha256 } = await appendLarge(file, Number(stat.size), writer, pace);
    const isChanged = hasChanged(file, stat, size);
    if (attempt === attemptsMax || !isChanged) return { stat, size, sha256, hasChanged: isChanged };
    await writer.discardContent();
  }
}

/** Appends at most `sizeMax` bytes. Without this limit, reading a log that grows fast would never end. */
async function appendLarge(
  file: number,
  sizeMax: number,
  writer: BlockWriter,
  pace: Pace,
): Promise<{ size: number; sha256: Buffer }> {
  const digest = createHash('sha256');
  let size = 0;
  while (size < sizeMax) {
    const room = await writer.room();
    const content = readUpTo(file, room.subarray(0, Math.min(room.length, 2 ** 20, sizeMax - size)), size);
    if (content.length === 0) break;
    digest.update(content);
    writer.commit(content.length);
    size += content.length;
    await pace();
  }
  return { size, sha256: digest.digest() };
}

function readUpTo(file: number, target: Buffer, position: number): Buffer {
  let filled = 0;
  while (filled < target.length) {
    const read = readSync(file, target, filled, target.length - filled, position + filled);
    if (read === 0) break;
    filled += read;
  }
  return target.subarray(0, filled);
}

function hasChanged(file: number, before: BigIntStats, bytesRead: number): boolean {
  const after = fstatSync(file, { bigint: true });
  return after.size !== before.size || after.mtimeNs !== before.mtimeNs || after.size !== BigInt(bytesRead);
}
