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
