import { randomUUID } from 'node:crypto';
import { link, open, readFile, rename, rm } from 'node:fs/promises';
import path from 'node:path';

export const codeOfError = (error: unknown): string | undefined =>
  typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string' ? error.code : undefined;

/** Makes what happened to the names in a folder survive the machine. */
export async function syncFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  try {
    await handle.sync();
  } finally {
    await handle.close();
  }
}

async function writeBeside(file: string, text: string): Promise<string> {
  const temporary = `${file}.${randomUUID()}.tmp`;
  const handle = await open(temporary, 'wx', 0o600);
  try {
    await handle.writeFile(text);
    await handle.sync();
  } finally {
    await handle.close();
  }
  return temporary;
}

/** The file has the old content or the new one, whoever dies when. */
export async function replaceFile(file: string, text: string): Promise<void> {
  await rename(await writeBeside(file, text), file);
  await syncFolder(path.dirname(file));
}

/** Of several that create the same file one succeeds: false when it is there already. Whoever sees it sees it whole. */
export async function createFile(file: string, text: string): Promise<boolean> {
  const temporary = await writeBeside(file, text);
  try {
    await link(temporary, file);
    return true;
  } catch (error) {
    if (codeOfError(error) === 'EEXIST') return false;
    throw error;
  } finally {
    await rm(temporary, { force: true });
    await syncFolder(path.dirname(file));
  }
}

/** Null when there is no such file. */
export async function readText(file: string): Promise<string | null> {
  try {
    return await readFile(file, 'utf8');
  } catch (error) {
    if (codeOfError(error) === 'ENOENT') return null;
    throw error;
  }
}
