import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { folderSink, folderSource, manifestName, systemErrorCode } from '@drydock/archive';
import { assertStorageKey, type BackupStorage } from './backup-storage';

const isMissing = (error: unknown): boolean => systemErrorCode(error) === 'ENOENT';

/** Keeps archives as folders below `root`, on the worker's disk. */
export function localBackupStorage(root: string): BackupStorage {
  const folderOf = (key: string): string => {
    assertStorageKey(key);
    return join(root, key);
  };
  const has = async (key: string): Promise<boolean> => {
    const found = await stat(join(folderOf(key), manifestName)).catch((error: unknown) => {
      if (isMissing(error)) return null;
      throw error;
    });
    return found?.isFile() ?? false;
  };
  const listNames = (prefix: string): Promise<string[]> =>
    readdir(folderOf(prefix)).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
  return {
    locationIn: () => 'worker_host',
    placeIn: () => 'worker_host',
    sink: (key) => folderSink(folderOf(key)),
    source: (key) => folderSource(folderOf(key)),
    has,
    listFinished: async (prefix) => {
      const finished: string[] = [];
      for (const name of await listNames(prefix))
        if (await has(`${prefix}/${name}`)) finished.push(`${prefix}/${name}`);
      return finished;
    },
    removeAll: async (prefix, keep) => {
      const folder = folderOf(prefix);
      for (const name of await listNames(prefix))
        if (`${prefix}/${name}` !== keep) await rm(join(folder, name), { recursive: true, force: true });
      if (keep === undefined) await rm(folder, { recursive: true, force: true });
      return { lockedObjects: 0 };
    },
    // A lock would be worth nothing here: every account that may write this disk may also erase it.
    lock: async () => null,
    canary: () => null,
  };
}
