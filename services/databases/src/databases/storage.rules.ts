import type { StorageState } from '@drydock/contracts/databases/databases';
import type { EventType } from '@drydock/contracts/keys/events';
import type { CountedStorage } from './database.types';

/** The share of its storage from which a database is nearly full. */
const nearlyFull = 0.9;
/** The share of its storage below which a database that was nearly full no longer is. */
const noLongerNearlyFull = 0.85;

const shareOf = ({ dataBytes, logBytes, limitBytes }: CountedStorage): number =>
  Math.max(dataBytes, logBytes ?? 0) / limitBytes;

export function storageStateOf(storage: CountedStorage): StorageState {
  if (storage.state !== 'within') return storage.state;
  return shareOf(storage) < nearlyFull ? 'ok' : 'nearly_full';
}

/**
 * The state to record after this count. A database that was not `ok` becomes `ok` only below 85 % of its storage, so
 * that a size that moves about nine tenths causes one event.
 */
export function nextStorageState(recorded: StorageState, storage: CountedStorage): StorageState {
  const state = storageStateOf(storage);
  const isHeld = state === 'ok' && recorded !== 'ok' && shareOf(storage) >= noLongerNearlyFull;
  return isHeld ? 'nearly_full' : state;
}

const isFull = (state: StorageState): boolean => state === 'full' || state === 'closed';

/** The event of a change of the recorded state; null if the change has none. */
export function storageEvent(before: StorageState, after: StorageState): EventType | null {
  if (after === 'closed') return 'database.storage_closed';
  // A database that was closed gets sessions again, and is still full.
  if (after === 'full') return before === 'closed' ? null : 'database.storage_full';
  if (isFull(before)) return 'database.storage_freed';
  return after === 'nearly_full' ? 'database.storage_nearly_full' : null;
}
