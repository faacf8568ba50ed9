import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { folderSink, folderSource, manifestName, systemErrorCode } from '@drydock/archive';
import { assertStorageKey, type BackupStorage } from './backup-storage';

/** Stores archives in folders below `root`, on the disk of the worker's machine. */
export function localBackupStorage(root: string): BackupStorage {
  const folderOf = (key: string): string => {
    assertStorageKey(key);
    return join(root, key);
  };
  const listNames = (folder: string): Promise<string[]> =>
    readdir(folder).catch((error: unknown) => {
      if (systemErrorCode(error) === 'ENOENT') return [];
      throw error;
    });
  return {
    sink: (key) => folderSink(folderOf(key)),
    source: (key) => folderSource(folderOf(key)),
    listFinished: async (prefix) => {
      const finished: string[] = [];
      for (const name of await listNames(folderOf(prefix)))
        if ((await listNames(folderOf(`${prefix}/${name}`))).includes(manifestName)) finished.push(`${prefix}/${name}`);
      return finished;
    },
    removeAll: async (prefix, keep) => {
      const folder = folderOf(prefix);
      if (keep === undefined) return rm(folder, { recursive: true, force: true });
      for (const name of await listNames(folder))
        if (`${prefix}/${name}` !== keep) await rm(join(folder, name), { recursive: true, force: true });
    },
  };
}
