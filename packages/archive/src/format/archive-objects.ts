import { type FileHandle, mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { refuse, systemErrorCode } from './archive-error';
import { formatBounds } from './archive-limits';

/**
 * The place to which an archive is written. An object is at most about 24 MB, and may be written again under the same
 * name (when a file is tried again).
 */
export interface ArchiveSink {
  /** Resolves once the object is durable. */
  write(name: string, bytes: Buffer): Promise<void>;
}

/** The source from which an archive is read. */
export interface ArchiveSource {
  /**
   * Returns the whole object, in a Buffer that belongs to the reader from then on (it may be moved to a thread).
   * Rejects with ArchiveError `missing` when the object does not exist, and with any other error when that cannot be
   * known.
   */
  read(name: string): Promise<Buffer>;
  /**
   * Only for a source that verifies objects when they come in. Resolves once the piece has come in and has been
   * verified. Whoever verifies an archive then need not read it again. Rejects as `read` does, and with what
   * `piece.verify` throws.
   */
  hold?(piece: SealedPiece): Promise<void>;
}

/** An object of an archive, as the level above it names it. */
export interface SealedPiece {
  name: string;
  /** Bytes. */
  size: number;
  /**
   * Compares the MACs of the object. @throws ArchiveError `missing`, `truncated`, `foreign`, `tampered` or `mismatch`
   */
  verify(bytes: Buffer): void;
}

export const manifestName = 'manifest';

/** `segment-00000012` */
export function segmentName(number: number): string {
  return `segment-${String(number).padStart(8, '0')}`;
}

/** `index-00000012` */
export function blockName(number: number): string {
  return `index-${String(number).padStart(8, '0')}`;
}

/** Whether an object of an archive can have this name. A store may use it as the last part of a path or key. */
export function isObjectName(name: string): boolean {
  return name === manifestName || /^(?:segment|index)-\d{8,10}$/.test(name);
}

/**
 * An archive as files of one folder, which is created when it is missing. Each object appears completely (temporary
 * name, fsync, rename) or not at all.
 */
export function folderSink(folder: string): ArchiveSink {
  return {
    async write(name, bytes) {
      const path = objectPath(folder, name);
      await mkdir(folder, { recursive: true, mode: 0o700 });
      const temporary = `${path}.partial`;
      const file = await open(temporary, 'w', 0o600);
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      await rename(temporary, path);
      // The manifest is written last. Its rename must not reach the disk before the renames of the objects that it
      // vouches for.
      if (name === 'manifest') await syncFolder(folder);
    },
  };
}

/** Reads an archive that folderSink wrote. */
export function folderSource(folder: string): ArchiveSource {
  return {
    async read(name) {
      try {
        return await readWhole(objectPath(folder, name));
      } catch (error) {
        if (systemErrorCode(error) === 'ENOENT') refuse('missing', `object ${name} is missing`, error);
        throw error;
      }
    },
  };
}

function objectPath(folder: string, name: string): string {
  if (!isObjectName(name)) throw new TypeError(`not the name of an archive object: ${name}`);
  return join(folder, name);
}

async function syncFolder(folder: string): Promise<void> {
  const handle: FileHandle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

/**
 * Uses one allocation. `readFile` gathers pieces and joins them, which takes twice the memory until the next garbage
 * collection.
 */
async function readWhole(path: string): Promise<Buffer> {
  const file = await open(path, 'r');
  try {
    const { size } = await file.stat();
    if (size > 2 * formatBounds.blockIndexRawBytes) refuse('tampered', 'an object larger than any');
    const bytes = Buffer.allocUnsafeSlow(size);
    let filled = 0;
    while (filled < size) {
      const { bytesRead } = await file.read(bytes, filled, size - filled, filled);
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return bytes.subarray(0, filled);
  } finally {
    await file.close();
  }
}
