import { execFile } from 'node:child_process';
import { buffer } from 'node:stream/consumers';
import { promisify } from 'node:util';
import { archiveRoots, type ProgramDatabase, SkippedPaths, type StageResult } from '@drydock/agent/site';
import {
  ArchiveError,
  type ArchiveLink,
  type DerivedKeys,
  extract,
  openEntries,
  restoreFolder,
} from '@drydock/archive';
import { loadInto } from '../database/dump-and-load';

export interface ReleaseToStage {
  chain: readonly ArchiveLink[];
  key: readonly DerivedKeys[];
  /** Empty. */
  filesDir: string;
  /** Fresh and empty. Null: only the files are staged. */
  database: ProgramDatabase | null;
  progress(share: number): void;
}

/**
 * Stages files and database at the same time: one waits for the disk, the other for its server. The first failure stops
 * the other.
 */
export async function stageRelease({ chain, key, filesDir, database, progress }: ReleaseToStage): Promise<StageResult> {
  const lost = new SkippedPaths();
  const stop = new AbortController();
  const { signal } = stop;
  const files = async () => {
    const flush = flushBehind(filesDir, signal);
    const onProgress = ({ rawBytes, rawBytesTotal }: { rawBytes: number; rawBytesTotal: number }): void => {
      flush(rawBytes);
      progress(rawBytes / Math.max(rawBytesTotal, 1));
    };
    const extracted = await extract({
      chain,
      key,
      roots: { [archiveRoots.files]: filesDir },
      signal,
      onProgress,
      onLost: lost.add,
    });
    await giveFolder();
    await syncFileSystem(filesDir, signal);
    return extracted;
  };
  const giveFolder = async (): Promise<void> => {
    const described = await describedFolder(chain, key, signal);
    if (described !== null) restoreFolder(filesDir, described, (reason) => lost.add({ path: '.', reason }));
  };
  const load = async (): Promise<StageResult['database']> => {
    if (database === null) return [];
    return loadInto(database, openEntries({ chain, key, root: archiveRoots.database, signal }), signal);
  };
  const [ofFiles, ofDatabase] = [files(), load()];
  try {
    const [{ entries, rawBytes }, findings] = await Promise.all([ofFiles, ofDatabase]);
    return { entries, raw_bytes: rawBytes, lost: lost.result, database: findings };
  } finally {
    stop.abort();
    await Promise.allSettled([ofFiles, ofDatabase]);
  }
}

/** Null for an archive from before folders were described. */
async function describedFolder(
  chain: readonly ArchiveLink[],
  key: readonly DerivedKeys[],
  signal: AbortSignal,
): Promise<Buffer | null> {
  try {
    for await (const entry of openEntries({ chain, key, root: archiveRoots.folder, signal }))
      return await buffer(entry.content());
  } catch (error) {
    if (!(error instanceof ArchiveError && error.reason === 'unknown_root')) throw error;
  }
  return null;
}

const run = promisify(execFile);

/**
 * Resolves when everything written to the file system of `folder` is on disk: one call for a million files, where an
 * fsync of each takes minutes. Node has no syncfs, so this runs coreutils' `sync -f`; a system without that has a plain
 * `sync`, which does more than needed.
 */
async function syncFileSystem(folder: string, signal: AbortSignal): Promise<void> {
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
function flushBehind(folder: string, signal: AbortSignal): (writtenBytes: number) => void {
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
