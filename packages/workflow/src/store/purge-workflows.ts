import type { Database, Sql } from '@drydock/service/database/sql';
import type { Log } from '../definition/definition';
import { messageOf } from '../definition/step-error';

/** Longer than any backup is kept: whoever looks at a backup finds the work that made it. */
const keptDays = 120;

/** In one statement, so that none holds many rows for long. */
const batchMax = 1_000;

const purgeSql = `
  DELETE FROM workflow WHERE id IN (
    SELECT id FROM workflow WHERE finished_at < clock_timestamp() - interval '${keptDays} days' AND status IN ('succeeded', 'failed')
    ORDER BY id LIMIT ${batchMax} FOR UPDATE SKIP LOCKED
  ) RETURNING id`;

export interface WorkflowPurge {
  /** At once, and then every hour. */
  start(): void;
  stop(): Promise<void>;
}

/** Removes workflows that ended 120 days ago, with their steps. In every worker alike: a second one finds nothing to do. */
export function createWorkflowPurge(database: Pick<Database<never>, 'sql'>, log: Log, everyMs = 3_600_000): WorkflowPurge {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let isStopped = false;
  const purge = async (): Promise<void> => {
    try {
      while (!isStopped && (await database.sql().query(purgeSql)).length === batchMax);
    } catch (error) {
      log.warn({ internal: messageOf(error) }, 'old workflows could not be removed; tried again later');
    }
  };
  const run = (): void => {
    running = running.then(purge);
  };
  return {
    start: () => {
      run();
      timer = setInterval(run, everyMs).unref();
    },
    stop: async () => {
      isStopped = true;
      clearInterval(timer);
      await running;
    },
  };
}

/** For what the clock starts every minute for ever: runs that went well a day ago are of no use to anybody, nor those that failed a month ago. */
export async function forgetRuns(sql: Sql, kind: string): Promise<void> {
  await sql.query(
    `DELETE FROM workflow WHERE kind = $1 AND (status = 'succeeded' AND finished_at < clock_timestamp() - interval '1 day'
       OR status = 'failed' AND finished_at < clock_timestamp() - interval '30 days')`,
    [kind],
  );
}
