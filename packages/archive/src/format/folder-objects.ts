import { type FileHandle, mkdir, open, rename } from 'node:fs/promises';
import { join } from 'node:path';
import { refuse, systemErrorCode } from './archive-error';
import { formatBounds } from './archive-limits';
import { type ArchiveSink, type ArchiveSource, isObjectName } from './archive-objects';

/**
 * Stores an archive as files in a folder, which is created if it is missing. Each object appears completely or not at
 * all (temporary name, fsync, rename).
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
      // names.
      if (name === 'manifest') await syncFolder(folder);
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
