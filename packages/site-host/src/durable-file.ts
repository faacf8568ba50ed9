import { randomBytes } from 'node:crypto';
import { open, readFile, rename, symlink } from 'node:fs/promises';
import path from 'node:path';
import { errorCodeOf } from './error-code';

const besideName = (file: string): string => `${file}.next-${randomBytes(6).toString('hex')}`;

/** Names that a crash in the middle of a replacement may leave behind; they mean nothing. */
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

/** Replaces a file as a whole: after a crash or a power cut it holds the old or the new text. */
export async function writeDurably(file: string, text: string, mode = 0o600): Promise<void> {
  const beside = besideName(file);
  const handle = await open(beside, 'wx', mode);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  await rename(beside, file);
  await syncFolder(path.dirname(file));
}

/** Makes `link` point to `target` by one rename; whoever looks sees the old target or the new one. `atRename` runs just before. */
export async function pointDurably(link: string, target: string, atRename: () => void): Promise<void> {
  const beside = besideName(link);
  await symlink(target, beside);
  atRename();
  await rename(beside, link);
  await syncFolder(path.dirname(link));
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
