import type { EventType } from '@drydock/contracts/keys/events';
import { type StorageState, storageStateSchema } from '@drydock/contracts/platform/values';
import { metrics } from '@opentelemetry/api';
import type { Sql } from '../database/sql';
import { keepLooking, type Looking } from '../process/keep-looking';
import type { Log } from '../telemetry/log';
import { auditingChange } from './audit';

/** How full a site or a database is, as its agent has counted it. */
export interface Fullness {
  /**
   * The limit that the agent enforces. A `full` site or database takes no more data, and a `closed` one gets no
   * sessions either. `within` means that neither limit applies.
   */
  state: 'within' | 'full' | 'closed';
  /** The used share of the storage; 1 is all of it. */
  share: number;
  /**
   * Whether a part of the site or database has not been counted yet. The recorded state can then become fuller, but not
   * less full.
   */
  isPartial?: boolean;
}

/** A site or database is nearly full from this used share of its storage on. */
const nearlyFull = 0.9;
/** A site or database that was nearly full is `ok` again below this used share of its storage. */
const noLongerNearlyFull = 0.85;

export function storageStateOf({ state, share }: Fullness): StorageState {
  if (state !== 'within') return state;
  return share < nearlyFull ? 'ok' : 'nearly_full';
}

/**
 * The state to record after this count. A state that was not `ok` becomes `ok` only below 85 % of the storage, so that
 * a size that fluctuates around 90 % causes one event.
 */
function nextState(recorded: StorageState, fullness: Fullness): StorageState {
  const state = storageStateOf(fullness);
  const isHeld = state === 'ok' && recorded !== 'ok' && fullness.share >= noLongerNearlyFull;
  return isHeld ? 'nearly_full' : state;
}

const isFull = (state: StorageState): boolean => state === 'full' || state === 'closed';

/**
 * The name of the event for a change of the recorded state, without its first word (`thing`). Null if the change has no
 * event.
 */
function eventOf(before: StorageState, after: StorageState) {
  if (after === 'closed') return 'storage_closed';
  // A change from `closed` to `full` has no event: sessions are possible again, but the storage is still full.
  if (after === 'full') return before === 'closed' ? null : 'storage_full';
  if (isFull(before)) return 'storage_freed';
  return after === 'nearly_full' ? 'storage_nearly_full' : null;
}

export interface WatchedStorage {
  database: { sql(): Sql };
  /** The first word of the names of the events. */
  thing: 'site' | 'database';
  /** A table with the columns `id`, `org_id`, `mode` and `storage_state`. */
  table: 'sites' | 'managed_databases';
  /** The SQL condition for the rows of sites or databases that still exist. */
  isThere: string;
  pathOf(id: string): string;
  /** Resolves with the fullness of everything that agents have counted, by the id of the site or database. */
  list(signal: AbortSignal): Promise<ReadonlyMap<string, Fullness>>;
}

const pauseMs = { afterLook: 60_000, afterFailure: 10_000 };
const meter = metrics.getMeter('@drydock/service');

/**
 * Reads once a minute how full all sites or databases are. Writes an event when one becomes nearly full, full or
 * closed, and when one is freed.
 */
export function keepWatchingStorage(watched: WatchedStorage, log: Log): Looking {
  let counts: Record<StorageState, number> | null = null;
  meter
    .createObservableGauge(`${watched.thing}.storage`, { description: `All ${watched.thing}s, by how full they are` })
    .addCallback((result) => {
      for (const [state, count] of Object.entries(counts ?? {})) result.observe(count, { state });
    });
  return keepLooking(log, `how full ${watched.thing}s are`, pauseMs, async (signal) => {
    counts = await watchStorage(watched, signal);
  });
}

interface StorageRow {
  id: string;
  storage_state: StorageState;
}

/**
 * Records each change of a storage state, with its event. Resolves with the number of sites or databases in each state,
 * as the agents have counted them.
 */
export async function watchStorage(
  watched: WatchedStorage,
  signal: AbortSignal,
): Promise<Record<StorageState, number>> {
  const found = await watched.list(signal);
  const counts: Record<StorageState, number> = { ok: 0, nearly_full: 0, full: 0, closed: 0 };
  const filling: string[] = [];
  for (const [id, fullness] of found) {
    const state = storageStateOf(fullness);
    counts[state] += 1;
    if (state !== 'ok') filling.push(id);
  }
  const { database, table, isThere } = watched;
  const rows = await database
    .sql()
    .query<StorageRow>(
      `SELECT id, storage_state FROM ${table} WHERE ${isThere} AND (storage_state <> 'ok' OR id = ANY($1::uuid[]))`,
      [filling],
    );
  for (const row of rows) {
    signal.throwIfAborted();
    const fullness = found.get(row.id);
    if (fullness !== undefined) await follow(watched, row, fullness);
  }
  return counts;
}

/**
 * Records the new state of one row and the event of the change, in one statement. The statement changes the row only if
 * it still has the state that was read. So only one of several workers writes the event.
 */
async function follow(
  { database, thing, table, isThere, pathOf }: WatchedStorage,
  { id, storage_state: recorded }: StorageRow,
  fullness: Fullness,
): Promise<void> {
  const next = nextState(recorded, fullness);
  const rise = storageStateSchema.options.indexOf(next) - storageStateSchema.options.indexOf(recorded);
  if (rise === 0 || (rise < 0 && fullness.isPartial)) return;
  const event = eventOf(recorded, next);
  const action: EventType | null = event && `${thing}.${event}`;
  const updated =
    `UPDATE ${table} SET storage_state = $3::storage_state ` +
    `WHERE id = $1::uuid AND storage_state = $2::storage_state AND ${isThere} RETURNING org_id, mode`;
  await database.sql().query(
    `WITH changed AS (${updated}), ${auditingChange('changed', { action: '$4::text', target: '$5::text' })}
     SELECT 1`,
    [id, recorded, next, action, pathOf(id)],
  );
}
