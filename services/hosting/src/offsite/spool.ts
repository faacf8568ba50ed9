import { readFileSync } from 'node:fs';
import { access, mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ArchiveError } from '@drydock/archive/format/archive-error';
import { type ArchiveSource, manifestName, type SealedPiece } from '@drydock/archive/format/archive-objects';
import { folderSource } from '@drydock/archive/format/folder-objects';
import { releaseMemory } from '@drydock/archive/format/release-memory';

let spooled = 0;

/**
 * An archive of a customer's storage with a cache on our disk. It reads from the cache, and from the storage if an
 * object is not there. An object gets its final name in the cache only after its MACs were compared, and its readers
 * compare them again. Nothing is synced: an object that a crash loses is fetched again.
 * `isLastUse`: removes segments after they are read, so that syncing the restored files does not have to write these
 * too.
 */
export function spooledArchive(remote: ArchiveSource, folder: string, isLastUse: boolean): Required<ArchiveSource> {
  const local = folderSource(folder);
  const arriving = new Map<string, Promise<void>>();

  const store = async (name: string, bytes: Buffer): Promise<void> => {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    spooled += 1;
    // Each writer has its own file name: a worker that lost its lease may still be writing.
    const partial = path.join(folder, `${name}.${process.pid}-${spooled}.partial`);
    await writeFile(partial, bytes, { mode: 0o600 });
    await rename(partial, path.join(folder, name));
  };
  const bringIn = async (piece: SealedPiece): Promise<void> => {
    const bytes = await remote.read(piece.name);
    piece.verify(bytes);
    await store(piece.name, bytes);
    releaseMemory(bytes);
  };
  const bringInOnce = (piece: SealedPiece): Promise<void> => {
    const coming = arriving.get(piece.name) ?? bringIn(piece).finally(() => arriving.delete(piece.name));
    arriving.set(piece.name, coming);
    return coming;
  };
  const readRemote = async (name: string): Promise<Buffer> => {
    const bytes = await remote.read(name);
    // The manifest is small, every step reads it, and the opener of the archive compares it with the one on record.
    if (name === manifestName && !isLastUse) await store(name, bytes);
    return bytes;
  };
  return {
    read: async (name) => {
      await arriving.get(name);
      const bytes = await local.read(name).catch((error: unknown) => {
        if (error instanceof ArchiveError && error.reason === 'missing') return readRemote(name);
        throw error;
      });
      if (isLastUse && isSegment(name)) await rm(path.join(folder, name), { force: true });
      return bytes;
    },
    hold: async (piece) => {
      const isThere = await access(path.join(folder, piece.name)).then(
        () => true,
        () => false,
      );
      if (!isThere) await bringInOnce(piece);
    },
  };
}

const isSegment = (name: string): boolean => name.startsWith('segment-');

/**
 * The folder of an archive for a workflow. It is another one after each start of the machine: an object whose content
 * was not on the disk when the power failed is then not taken for a verified one.
 */
export const spoolFolder = (workflowFolder: string, archiveId: string, boot = bootId()): string =>
  path.join(workflowFolder, boot, archiveId);

function bootId(): string {
  try {
    return readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();
  } catch {
    return 'boot';
  }
}

/** Files older than this belong to no restore, because none takes this long. */
const orphanMs = 48 * 3_600_000;

/** Removes the leftovers of workers that died. */
export async function removeOrphans(spoolDir: string, nowMs: number): Promise<void> {
  for (const name of await readdir(spoolDir).catch(() => [])) {
    const folder = path.join(spoolDir, name);
    const found = await stat(folder).catch(() => null);
    if (found !== null && nowMs - found.mtimeMs > orphanMs) await rm(folder, { recursive: true, force: true });
  }
}
