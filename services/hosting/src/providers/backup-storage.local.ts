import { readdir, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { systemErrorCode } from '@drydock/archive/format/archive-error';
import { manifestName } from '@drydock/archive/format/archive-objects';
import { folderSink, folderSource } from '@drydock/archive/format/folder-objects';
import { assertStorageKey, type BackupStorage } from './backup-storage';

const isMissing = (error: unknown): boolean => systemErrorCode(error) === 'ENOENT';

/** Archives as folders below `root`, on the disk of the worker's host. */
export function localBackupStorage(root: string): BackupStorage {
  const folderOf = (key: string): string => {
    assertStorageKey(key);
    return join(root, key);
  };
  return {
    locationIn: () => 'worker_host',
    placeIn: () => 'worker_host',
    sink: (key) => folderSink(folderOf(key)),
    source: (key) => folderSource(folderOf(key)),
    has: async (key) => {
      const found = await stat(join(folderOf(key), manifestName)).catch((error: unknown) => {
        if (isMissing(error)) return null;
        throw error;
      });
      return found?.isFile() ?? false;
    },
    removeAll: async (prefix, keep) => {
      const folder = folderOf(prefix);
      const names = await readdir(folder).catch((error: unknown) => {
        if (isMissing(error)) return [];
        throw error;
      });
      for (const name of names) if (`${prefix}/${name}` !== keep) await rm(join(folder, name), { recursive: true, force: true });
      if (keep === undefined) await rm(folder, { recursive: true, force: true });
      return { lockedObjects: 0 };
    },
    // Whoever may write this disk may also wipe it: nothing here is worth being called a lock.
    lock: async () => null,
    canary: () => null,
  };
}
