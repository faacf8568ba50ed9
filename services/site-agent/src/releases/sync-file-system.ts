import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Resolves when everything written to the file system of `folder` is on disk: one call for a million files, where an
 * fsync of each takes minutes. Node has no syncfs, so this runs coreutils' `sync -f`; a system without that has a plain
 * `sync`, which does more than needed.
 */
export async function syncFileSystem(folder: string, signal: AbortSignal): Promise<void> {
  await run('sync', ['-f', folder], { signal }).catch(async (error: unknown) => {
    signal.throwIfAborted();
    await run('sync', [], { signal }).catch(() => {
      throw error;
    });
  });
}

/** The bytes written between two flushes: enough to be worth one, few enough to be on disk soon. */
const flushedEveryBytes = 96 * 1024 * 1024;

/**
 * Call it with the number of bytes written so far. It flushes them behind their writer, so that the sync at the end
 * finds little left to do. At most one flush runs at a time. A failed flush is not reported, because the sync at the
 * end fails as well.
 */
export function flushBehind(folder: string, signal: AbortSignal): (writtenBytes: number) => void {
  let flushedBytes = 0;
  let isFlushing = false;
  return (writtenBytes) => {
    if (isFlushing || writtenBytes - flushedBytes < flushedEveryBytes) return;
    isFlushing = true;
    flushedBytes = writtenBytes;
    const ended = (): void => {
      isFlushing = false;
    };
    syncFileSystem(folder, signal).then(ended, ended);
  };
}
