import type { Database } from '../database/sql';
import type { Log } from '../telemetry/log';
import { purgeIdempotency } from './idempotency.store';

export interface IdempotencyPurge {
  start(): void;
  stop(): void;
}

/** Rows deleted in one statement: few enough that it holds no lock for long. */
const rowsMax = 1_000;

/**
 * Deletes idempotency records past their 24 hours, a few at a time. Every process does it; a second one finds nothing
 * to do.
 */
export function createIdempotencyPurge(
  database: Pick<Database<never>, 'sql'>,
  log: Log,
  everyMs = 600_000,
): IdempotencyPurge {
  let timer: NodeJS.Timeout | undefined;
  const purge = async (): Promise<void> => {
    try {
      while ((await purgeIdempotency(database.sql(), rowsMax)) === rowsMax);
    } catch (error) {
      log.warn({ err: error }, 'old idempotency records could not be deleted; tried again later');
    }
  };
  return {
    start: () => {
      timer = setInterval(() => void purge(), everyMs).unref();
    },
    stop: () => clearInterval(timer),
  };
}
