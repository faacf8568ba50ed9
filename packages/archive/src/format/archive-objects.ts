import { constants } from 'node:fs';
import { type FileHandle, mkdir, open, rename } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { refuse, systemErrorCode } from './archive-error';
import { formatBounds } from './archive-limits';

/**
 * The place to which an archive is written. An object has at most about 24 MB. If a large file changes while it is
 * packed, the file is read again, and objects that were already written are replaced under the same names.
 */
export interface ArchiveSink {
  /** Resolves when the object is stored. Once the manifest is stored, all objects are durable. */
  write(name: string, bytes: Buffer): Promise<void>;
}

export interface ArchiveSource {
  /**
   * Returns the whole object. The Buffer belongs to the caller, which may move it to a thread. Rejects with
   * ArchiveError `missing` only if the object certainly does not exist. Any other failure rejects with another error.
   */
  read(name: string): Promise<Buffer>;
  /**
   * Fetches and verifies a piece. Only a source that verifies objects while it fetches them has this function.
   * `verifyPiece` calls it instead of reading the piece. Rejects like `read`, or with the error of `piece.verify`.
   */
  hold?(piece: SealedPiece): Promise<void>;
}

/** An object as the manifest or a block records it, with a check of its bytes. */
export interface SealedPiece {
  name: string;
  /** The object's size in bytes. */
  size: number;
  /** Compares the object's MACs. @throws ArchiveError `truncated`, `foreign`, `tampered` or `mismatch` */
  verify(bytes: Buffer): void;
}

export const manifestName = 'manifest';

/** Returns a name such as `segment-00000012`. */
export function segmentName(number: number): string {
  return `segment-${String(number).padStart(8, '0')}`;
}

/** Returns a name such as `index-00000012`. */
export function blockName(number: number): string {
  return `index-${String(number).padStart(8, '0')}`;
}

/** Tells whether the name can be an object's name, so that a store may safely use it in a path or key. */
export function isObjectName(name: string): boolean {
  return name === manifestName || /^(?:segment|index)-\d{8,10}$/.test(name);
}

/**
 * Stores an archive as files in a folder, which is created if it is missing. Each object appears completely or not at
 * all (temporary name, fsync, rename). Even after a power cut, the manifest exists only together with all objects.
 */
export function folderSink(folder: string): ArchiveSink {
  return {
    async write(name, bytes) {
      const path = objectPath(folder, name);
      const made = await mkdir(folder, { recursive: true, mode: 0o700 });
      if (made !== undefined) await syncParents(made, folder);
      const temporary = `${path}.partial`;
      const file = await open(temporary, 'w', 0o600);
      try {
        await file.writeFile(bytes);
        await file.sync();
      } finally {
        await file.close();
      }
      // The manifest is written last. The first sync makes the renames of all objects durable before the manifest's
      // rename, which the file system may otherwise store first. The second sync makes the manifest's rename durable.
      if (name === manifestName) await syncFolder(folder);
      await rename(temporary, path);
      if (name === manifestName) await syncFolder(folder);
    },
  };
}

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

/** Makes new folders durable by syncing the parent of each, from `last` up to `first`, the highest new folder. */
async function syncParents(first: string, last: string): Promise<void> {
  for (let made = resolve(last); made.length >= first.length; made = dirname(made)) await syncFolder(dirname(made));
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
 * Reads a file into one allocation. `readFile` joins pieces, which takes twice the memory until the next garbage
 * collection.
 */
async function readWhole(path: string): Promise<Buffer> {
  // Without O_NONBLOCK, opening a FIFO would keep a thread of this process for ever.
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK);
  try {
    const stat = await file.stat();
    if (!stat.isFile()) refuse('tampered', 'an object that is no file');
    const { size } = stat;
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
