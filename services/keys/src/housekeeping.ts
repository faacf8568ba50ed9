import { purgeIdempotency } from '@drydock/service/effects';
import { createRounds, type Rounds } from '@drydock/service/process';
import type { Log } from '@drydock/service/telemetry';
import { retireExpiredKeys } from './api-keys/api-key.store';
import type { KeysDatabase } from './context/database.store';
import { purgeEvents } from './webhooks/delivery.store';
import { purgeWorkflows } from './workflows/workflow.store';

/**
 * The most events, workflows or idempotency records that one statement removes. The deliveries of an event are removed
 * with it.
 */
const rowsAtOnce = 100;

/** Retires expired keys and purges old rows. Safe in any number of processes at once. */
export async function keepHouse(database: KeysDatabase): Promise<void> {
  await database.transaction(retireExpiredKeys);
  while ((await purgeIdempotency(database.sql(), rowsAtOnce)) === rowsAtOnce);
  while ((await purgeEvents(database, rowsAtOnce)) === rowsAtOnce);
  while ((await purgeWorkflows(database.sql(), rowsAtOnce)) === rowsAtOnce);
}

/**
 * Runs housekeeping on a timer, because the keys service runs no workflows and so has no schedules. After a crash, the
 * next round does the missed work.
 */
export const createHousekeeping = (database: KeysDatabase, log: Log): Rounds =>
  createRounds(log, 'a round of housekeeping', 60_000, () => keepHouse(database));
