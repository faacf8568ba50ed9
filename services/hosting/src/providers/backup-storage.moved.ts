import { ArchiveError } from '@drydock/archive/archive-error';
import type { ArchiveSource } from '@drydock/archive/archive-objects';
import type { BackupStorage } from './backup-storage';

const isMissing = (error: unknown): boolean => error instanceof ArchiveError && error.reason === 'truncated';

/** Writes to `current`; what was written to `former` before stays there and is found there, so that object storage can be configured any day. */
export function movedStorage(current: BackupStorage, former: BackupStorage): BackupStorage {
  return {
    ...current,
    source: (key): ArchiveSource => {
      const [here, there] = [current.source(key), former.source(key)];
      return {
        read: (name) =>
          here.read(name).catch((error: unknown) => {
            if (isMissing(error)) return there.read(name);
            throw error;
          }),
      };
    },
    has: async (key) => (await current.has(key)) || (await former.has(key)),
    removeAll: async (prefix, keep) => {
      await former.removeAll(prefix, keep);
      return current.removeAll(prefix, keep);
    },
  };
}
