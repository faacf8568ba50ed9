import type { DatabaseStorage, getDatabaseStorage as endpoint } from '@drydock/contracts/databases/databases';
import { problem } from '@drydock/contracts/platform/problem';
import { type Fullness, storageStateOf, type WatchedStorage } from '@drydock/service/effects';
import type { ReadHandlers } from '@drydock/service/http';
import { findSize } from '../catalogue/catalogue';
import type { HandlerContext } from '../context/context';
import type { DatabasesDatabase } from '../context/database.store';
import type { CountedStorage, DatabaseReader } from '../providers/database-provider';
import { databasePath } from './database.types';
import { readDatabase } from './database-record';

/** Shows how full the database is. Until the agent has counted it, everything except the limit is null. */
export const getDatabaseStorage = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { id, orgId, mode, size } = await readDatabase(context, request);
      const storage = await context.provider.readStorage({ databaseId: id, orgId, mode }).catch((error: unknown) => {
        throw problem('dependency_unavailable', {
          extra: { dependency: 'database-host' },
          retryAfterSeconds: 30,
          cause: error,
        });
      });
      return { status: 200, body: storage === null ? notCounted(size) : viewStorage(storage) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;

const notCounted = (size: string): DatabaseStorage => ({
  state: null,
  limit_bytes: (findSize(size)?.storage_gb ?? 0) * 1e9,
  data_bytes: null,
  log_bytes: null,
  counted_at: null,
});

const viewStorage = (storage: CountedStorage): DatabaseStorage => ({
  state: storageStateOf(fullnessOf(storage)),
  limit_bytes: storage.limitBytes,
  data_bytes: storage.dataBytes,
  log_bytes: storage.logBytes,
  counted_at: storage.countedAt.toISOString(),
});

const fullnessOf = ({ state, limitBytes, dataBytes, logBytes }: CountedStorage): Fullness => ({
  state,
  share: Math.max(dataBytes, logBytes ?? 0) / limitBytes,
});

/** The storage of all databases, for `keepWatchingStorage`. */
export const watchedStorage = (
  database: DatabasesDatabase,
  provider: Pick<DatabaseReader, 'listStorage'>,
): WatchedStorage => ({
  database,
  thing: 'database',
  table: 'managed_databases',
  isThere: "status <> 'deleted'",
  pathOf: databasePath,
  list: async (signal) => {
    const counted = await provider.listStorage(signal);
    return new Map([...counted].map(([id, storage]) => [id, fullnessOf(storage)]));
  },
});
