import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { ArchiveError } from '@drydock/archive/archive-error';
import type { ArchiveSource } from '@drydock/archive/archive-objects';
import { folderSource } from '@drydock/archive/folder-objects';
import { releaseMemory } from '@drydock/archive/release-memory';

/** An archive of a customer's storage with a copy on our disk: read from there, and fetched when it is not there yet. */
export interface SpooledArchive extends ArchiveSource {
  /** Makes sure that the object is on the disk; resolves with its bytes' number. */
  fetch(name: string): Promise<number>;
}

const isSegment = (name: string): boolean => name.startsWith('segment-');

let spooled = 0;

/**
 * Nothing on the disk is trusted: whoever uses an object compares its MAC again. Nothing is synced either: what a crash loses is fetched again.
 * `isLastUse`: a segment is removed once it was read, so that the sync of what it became need not write it down as well.
 */
export function spooledArchive(remote: ArchiveSource, folder: string, isLastUse: boolean): SpooledArchive {
  const local = folderSource(folder);
  const readLocal = async (name: string): Promise<Buffer> => {
    const bytes = await local.read(name);
    if (isLastUse && isSegment(name)) await rm(path.join(folder, name), { force: true });
    return bytes;
  };
  const fetchNow = async (name: string): Promise<Buffer> => {
    const bytes = await remote.read(name);
    await mkdir(folder, { recursive: true, mode: 0o700 });
    spooled += 1;
    // Names of its own for every writer: a worker that lost its lease may still be at it.
    const partial = path.join(folder, `${name}.${process.pid}-${spooled}.partial`);
    await writeFile(partial, bytes, { mode: 0o600 });
    await rename(partial, path.join(folder, name));
    return bytes;
  };
  return {
    read: (name) =>
      readLocal(name).catch((error: unknown) => {
        if (error instanceof ArchiveError && error.reason === 'truncated') return isLastUse ? remote.read(name) : fetchNow(name);
        throw error;
      }),
    fetch: async (name) => {
      const found = await stat(path.join(folder, name)).catch(() => null);
      if (found !== null) return found.size;
      const bytes = await fetchNow(name);
      const { length } = bytes;
      releaseMemory(bytes);
      return length;
    },
  };
}

/** Longer than any restore takes: what is older belongs to none. */
const orphanMs = 48 * 3_600_000;

/** Removes what workers that died have left behind. */
export async function removeOrphans(spoolDir: string, nowMs: number): Promise<void> {
  for (const name of await readdir(spoolDir).catch(() => [])) {
    const folder = path.join(spoolDir, name);
    const found = await stat(folder).catch(() => null);
    if (found !== null && nowMs - found.mtimeMs > orphanMs) await rm(folder, { recursive: true, force: true });
  }
}
