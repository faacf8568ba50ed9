import { randomBytes } from 'node:crypto';
import { link, open, readFile, rename, rm, symlink } from 'node:fs/promises';
import path from 'node:path';

const besideName = (file: string): string => `${file}.next-${randomBytes(6).toString('hex')}`;

/** Tells whether a name is that of a temporary file, which a crash can leave behind and nobody needs. */
export const isLeftover = (name: string): boolean => /\.next-[0-9a-f]{12}$/.test(name);

/** Syncs a folder. A rename in the folder is durable only after this. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function writeBeside(file: string, text: string): Promise<string> {
  const beside = besideName(file);
  const handle = await open(beside, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  return beside;
}

/** Replaces a file in one step. After a crash or power cut the file has the old or the new text. */
export async function writeDurably(file: string, text: string): Promise<void> {
  await rename(await writeBeside(file, text), file);
  await syncFolder(path.dirname(file));
}

/**
 * Creates a complete file in one step. If several processes create it, one succeeds. Returns false if the file exists.
 */
export async function createDurably(file: string, text: string): Promise<boolean> {
  const beside = await writeBeside(file, text);
  try {
    await link(beside, file);
    return true;
  } catch (error) {
    if (errorCodeOf(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(beside, { force: true });
    await syncFolder(path.dirname(file));
  }
}

/**
 * Points a link to another target by one rename, so that a reader sees the old or the new target. `atRename` is called
 * directly before the rename.
 */
export async function pointDurably(pointer: string, target: string, atRename: () => void): Promise<void> {
  const beside = besideName(pointer);
  await symlink(target, beside);
  atRename();
  await rename(beside, pointer);
  await syncFolder(path.dirname(pointer));
}

export async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/**
 * Returns an error's code such as `ENOENT`, or ''. `instanceof` is not used, because an error may come from another
 * realm.
 */
export function errorCodeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}
