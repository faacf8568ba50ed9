import type { DatabaseStorage, getDatabaseStorage as endpoint } from '@drydock/contracts/databases/databases';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import { findSize } from '../catalogue/catalogue';
import type { HandlerContext } from '../context/context';
import type { CountedStorage } from './database.types';
import { readDatabase } from './database-record';
import { storageStateOf } from './storage.rules';

/** Shows how full the database is. All but the limit is null while the agent has not counted it. */
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
  state: storageStateOf(storage),
  limit_bytes: storage.limitBytes,
  data_bytes: storage.dataBytes,
  log_bytes: storage.logBytes,
  counted_at: storage.countedAt.toISOString(),
});
