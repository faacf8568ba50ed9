import { execFile } from 'node:child_process';
import { promisify } from 'node:util';

const run = promisify(execFile);

/**
 * Everything written to the file system of `folder` is on disk when this resolves: one call for a million files, where an fsync of each takes
 * minutes. Node has no syncfs; coreutils' `sync -f` is it, and where there is none plain `sync` does more than is asked.
 */
export async function syncFileSystem(folder: string, signal: AbortSignal): Promise<void> {
  await run('sync', ['-f', folder], { signal }).catch(async (error: unknown) => {
    signal.throwIfAborted();
    await run('sync', [], { signal }).catch(() => {
      throw error;
    });
  });
}

/** Written before the next flush: enough to be worth one, little enough to be on disk soon. */
const flushedEveryBytes = 96 * 1024 * 1024;

/**
 * Call it with the bytes written so far: they are put on disk behind their writer, so that the sync at the end finds little left to do. At
 * most one flush runs at a time. One that fails tells nobody: the sync at the end fails as well.
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
