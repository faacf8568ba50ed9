import { randomBytes } from 'node:crypto';
import { link, open, readFile, rename, rm, symlink } from 'node:fs/promises';
import path from 'node:path';

const besideName = (file: string): string => `${file}.next-${randomBytes(6).toString('hex')}`;

/** Whether a crash during a replacement left this file behind. Such a file has no meaning. */
export const isLeftover = (name: string): boolean => /\.next-[0-9a-f]{12}$/.test(name);

/** A rename is on disk only after its folder was synced. */
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

/** Replaces a file as a whole: after a crash or a power cut it holds the old or the new text. */
export async function writeDurably(file: string, text: string): Promise<void> {
  await rename(await writeBeside(file, text), file);
  await syncFolder(path.dirname(file));
}

/**
 * Creates a whole file: everybody sees all of it or nothing. If several create the same file, one succeeds; false if it
 * exists already.
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
 * Makes `pointer` point to `target` by one rename: everybody sees the old or the new target. `atRename` runs just
 * before.
 */
export async function pointDurably(pointer: string, target: string, atRename: () => void): Promise<void> {
  const beside = besideName(pointer);
  await symlink(target, beside);
  atRename();
  await rename(beside, pointer);
  await syncFolder(path.dirname(pointer));
}

/** The text of a file, or null when there is none. */
export async function readIfThere(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (errorCodeOf(error) === 'ENOENT') return null;
    throw error;
  }
}

/**
 * The system's code of an error (`ENOENT`), or an empty text. It reads the property only, because an error may come
 * from another realm.
 */
export function errorCodeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error ? String(error.code) : '';
}
