import { lstat, mkdir, readdir, rm, statfs, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { refuse, systemErrorCode } from '../format/archive-error';

/**
 * Makes sure that there is an empty directory to extract into. Creates it, with mode 0700, when it does not exist.
 * @throws ArchiveError `staging_not_empty`
 */
export async function prepareStaging(directory: string): Promise<void> {
  await mkdir(directory, { mode: 0o700 }).catch((error: unknown) => {
    if (systemErrorCode(error) !== 'EEXIST') throw error;
  });
  const stat = await lstat(directory);
  if (!stat.isDirectory()) refuse('staging_not_empty', 'the target is not a directory');
  if ((await readdir(directory)).length > 0) refuse('staging_not_empty', 'the target directory holds something');
}

/** Whether the file system of an empty directory treats names as equal that differ only in case or normalisation. */
export async function probeFolding(directory: string): Promise<boolean> {
  const probes: [string, string][] = [
    ['drydock-probe-a', 'DRYDOCK-PROBE-A'],
    ['drydock-probe-\u00e9', 'drydock-probe-e\u0301'],
  ];
  for (const [written, asked] of probes) {
    await writeFile(join(directory, written), '', { flag: 'wx' });
    const found = await lstat(join(directory, asked)).catch(() => null);
    await rm(join(directory, written));
    if (found !== null) return true;
  }
  return false;
}

/** @throws ArchiveError `no_space` when the content alone would not fit */
export async function checkSpace(directory: string, rawBytes: number): Promise<void> {
  const space = await statfs(directory);
  if (space.bavail * space.bsize < rawBytes) refuse('no_space', `${rawBytes} bytes do not fit`);
}
