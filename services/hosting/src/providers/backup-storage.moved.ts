import { ArchiveError } from '@drydock/archive/format/archive-error';
import type { ArchiveSource } from '@drydock/archive/format/archive-objects';
import type { BackupReader, BackupStorage } from './backup-storage';

const isMissing = (error: unknown): boolean => error instanceof ArchiveError && error.reason === 'missing';

/** Looks in `current`, then in the place where backups were before. */
export const movedReader = (current: BackupReader, former: BackupReader): BackupReader => ({
  locationIn: (mode) => current.locationIn(mode),
  placeIn: (mode) => current.placeIn(mode),
  has: async (key) => (await current.has(key)) || (await former.has(key)),
});

/**
 * Writes to `current`. Backups in `former` stay there and are found there, so that object storage can be configured at
 * any time.
 */
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
    ...movedReader(current, former),
    listFinished: async (prefix) => [
      ...new Set([...(await current.listFinished(prefix)), ...(await former.listFinished(prefix))]),
    ],
    removeAll: async (prefix, keep) => {
      await former.removeAll(prefix, keep);
      return current.removeAll(prefix, keep);
    },
  };
}
