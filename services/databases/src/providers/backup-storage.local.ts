import { readdir, rm } from 'node:fs/promises';
import { join } from 'node:path';
import { systemErrorCode } from '@drydock/archive/format/archive-error';
import { folderSink, folderSource } from '@drydock/archive/format/folder-objects';
import { assertStorageKey, type BackupStorage } from './backup-storage';

/** Archives as folders below `root`, on the disk of the worker's host. */
export function localBackupStorage(root: string): BackupStorage {
  const folderOf = (key: string): string => {
    assertStorageKey(key);
    return join(root, key);
  };
  return {
    sink: (key) => folderSink(folderOf(key)),
    source: (key) => folderSource(folderOf(key)),
    removeAll: async (prefix, keep) => {
      const folder = folderOf(prefix);
      if (keep === undefined) return rm(folder, { recursive: true, force: true });
      const names = await readdir(folder).catch((error: unknown) => {
        if (systemErrorCode(error) === 'ENOENT') return [];
        throw error;
      });
      for (const name of names) if (`${prefix}/${name}` !== keep) await rm(join(folder, name), { recursive: true, force: true });
    },
  };
}
