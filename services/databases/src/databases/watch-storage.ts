import type { StorageState } from '@drydock/contracts/databases/databases';
import { audit } from '@drydock/service/effects';
import type { Log } from '@drydock/service/telemetry';
import { metrics } from '@opentelemetry/api';
import type { DatabasesDatabase } from '../context/database.store';
import { keepLooking, type Looking } from '../context/keep-looking';
import type { DatabaseReader } from '../providers/database-provider';
import { listStorageStates, recordStorageState, type StorageRow } from './database.store';
import { type CountedStorage, databasePath } from './database.types';
import { nextStorageState, storageEvent, storageStateOf } from './storage.rules';

interface Watched {
  database: DatabasesDatabase;
  provider: Pick<DatabaseReader, 'listStorage'>;
}

const pauseMs = { afterLook: 60_000, afterFailure: 60_000 };

/** The number of databases in each state at this worker's last look; null before the first. */
let counts: Record<StorageState, number> | null = null;
metrics
  .getMeter('@drydock/databases')
  .createObservableGauge('databases.storage', { description: 'Managed databases, by how full they are' })
  .addCallback((result) => {
    for (const [state, count] of Object.entries(counts ?? {})) result.observe(count, { state });
  });

/** Looks once a minute how full the databases are, and writes an event when one becomes full or is no longer. */
export function keepWatchingStorage(watched: Watched, log: Log): Looking {
  return keepLooking(log, 'how full databases are', pauseMs, (signal) => watchStorage(watched, signal));
}

export async function watchStorage({ database, provider }: Watched, signal: AbortSignal): Promise<void> {
  const storages = await provider.listStorage(signal);
  const found: Record<StorageState, number> = { ok: 0, nearly_full: 0, full: 0, closed: 0 };
  const filling: string[] = [];
  for (const [databaseId, storage] of storages) {
    const state = storageStateOf(storage);
    found[state] += 1;
    if (state !== 'ok') filling.push(databaseId);
  }
  counts = found;
  for (const row of await listStorageStates(database.pool, filling)) {
    signal.throwIfAborted();
    const storage = storages.get(row.id);
    if (storage !== undefined) await follow(database, row, storage);
  }
}

async function follow(database: DatabasesDatabase, row: StorageRow, storage: CountedStorage): Promise<void> {
  const next = nextStorageState(row.storageState, storage);
  if (next === row.storageState) return;
  const action = storageEvent(row.storageState, next);
  await database.transaction(async (tx) => {
    if (!(await recordStorageState(tx, row, next)) || action === null) return;
    const { id, orgId, mode } = row;
    const target = databasePath(id);
    await audit(database.sql(tx), { orgId, mode, actorKeyId: null, action, target, workflowId: null });
  });
}
