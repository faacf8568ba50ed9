import type { Sql } from '@drydock/service/database/sql';
import type { Log } from '@drydock/service/telemetry/log';
import type { HostingDatabase } from './database.store';
import { schedulePurges } from './deleted-sites/schedule-purges';
import { scheduleRegulars } from './retention/schedule-regulars';

/**
 * Each function writes the rows of some schedules, which the relay starts when due. Writing the same rows again changes
 * nothing.
 */
const schedules: ReadonlyArray<(sql: Sql) => Promise<void>> = [schedulePurges, scheduleRegulars];

const retryMs = 5_000;

/**
 * Writes the schedules, and tries again while Postgres is away: a worker that starts before Postgres must not wait for
 * it.
 */
export function keepSchedules(database: HostingDatabase, log: Log): { stop(): void } {
  let timer: NodeJS.Timeout | undefined;
  let isStopped = false;
  const save = (): void => {
    database
      .transaction(async (tx) => {
        for (const schedule of schedules) await schedule(database.sql(tx));
      })
      .catch((error: unknown) => {
        log.warn({ err: error }, 'the schedules could not be put down; they are tried again');
        if (!isStopped) timer = setTimeout(save, retryMs).unref();
      });
  };
  save();
  return {
    stop: () => {
      isStopped = true;
      clearTimeout(timer);
    },
  };
}
