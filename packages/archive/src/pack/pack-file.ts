import { createHash, hash } from 'node:crypto';
import { type BigIntStats, closeSync, constants, fstatSync, openSync, readSync } from 'node:fs';
import { type LostPart, readAttributes } from '../files/attributes';
import { formatBounds } from '../format/archive-limits';
import type { Pace } from '../read/pace';
import type { BlockWriter } from './block-writer';
import { type LivePath, unlessClosed } from './walk-directory';

/** How often a file that changes during its reading is read. After the last reading its content is recorded anyway. */
const attemptsMax = 3;

export interface PackedContent {
  /** The state of the file before reading. If the file changed later, the next increment sees another time or size. */
  stat: BigIntStats;
  size: number;
  sha256: Buffer;
  /** True if the file changed during every reading. */
  hasChanged: boolean;
  /** The encoded attributes. */
  attributes: Buffer;
}

/**
 * Appends a file's content to the archive. Size and SHA-256 are those of the appended bytes. Returns null if the path
 * is no longer a file, and `closed` if this process may not read it.
 */
export async function packFile(
  live: LivePath,
  { writer, pace }: { writer: BlockWriter; pace: Pace },
  onLost: (part: LostPart) => void,
): Promise<PackedContent | 'closed' | null> {
  // Opening must not wait, because a FIFO in the file's place would block the whole process.
  const flags = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK;
  const file = unlessClosed(() => openSync(live.location, flags));
  if (file === null || file === 'closed') return file;
  try {
    const stat = fstatSync(file, { bigint: true });
    if (!stat.isFile()) return null;
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

/** Reads at most `sizeMax` bytes, because a log that grows as fast as it is read would have no end. */
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
