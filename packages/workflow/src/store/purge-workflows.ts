import type { Database, Sql } from '@drydock/service/database';
import type { Log } from '../definition/definition';
import { messageOf } from '../definition/step-error';

/**
 * The days for which workflows are kept after their end, except those that {@link forgetRuns} removes earlier. A
 * workflow is kept for longer than a site's backup (`retentionDaysMax`), so that the workflow that took a backup can
 * always be found.
 */
const keptDays = 120;

/** The most workflows in one statement, so that no statement holds many rows for long. */
const batchMax = 100;

const purgeSql = `
  DELETE FROM workflow WHERE id IN (
    SELECT id FROM workflow WHERE finished_at < statement_timestamp() - interval '${keptDays} days'
    AND status IN ('succeeded', 'failed')
    ORDER BY finished_at LIMIT ${batchMax} FOR UPDATE SKIP LOCKED
  ) RETURNING id`;

/** Removes at most `batchMax` workflows that ended long ago. Resolves with whether there may be more. */
export const purgeWorkflows = async (sql: Sql): Promise<boolean> => (await sql.query(purgeSql)).length === batchMax;

export interface WorkflowPurge {
  /** Purges now, and then every hour. */
  start(): void;
  stop(): Promise<void>;
}

/**
 * Removes workflows that ended more than 120 days ago, with their steps. Every worker runs the purge. Workers do not
 * wait for each other, because a purge skips rows that another purge has locked.
 */
export function createWorkflowPurge(
  database: Pick<Database<never>, 'sql'>,
  log: Log,
  everyMs = 3_600_000,
): WorkflowPurge {
  let timer: NodeJS.Timeout | undefined;
  let running: Promise<void> = Promise.resolve();
  let isStopped = false;
  const purge = async (): Promise<void> => {
    try {
      while (!isStopped && (await purgeWorkflows(database.sql())));
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

/**
 * Removes old runs of one of the platform's own workflows (about `platform` or a `deploy_target`), which schedules
 * start again and again. Successful runs are removed after a day, failed runs after 30 days. Each run of such a
 * workflow calls this function, so one batch of each status suffices.
 */
export async function forgetRuns(sql: Sql, kind: string): Promise<void> {
  await sql.query(forgetSql, [kind]);
}

const oldRuns = (status: string, kept: string): string =>
  `(SELECT id FROM workflow WHERE subject_type IN ('platform', 'deploy_target') AND kind = $1 AND status = '${status}'
      AND finished_at < statement_timestamp() - interval '${kept}'
    ORDER BY finished_at LIMIT ${batchMax} FOR UPDATE SKIP LOCKED)`;
// The index has a range for each status, so the statement has a part for each status.
const forgetSql = `
  WITH went_well AS ${oldRuns('succeeded', '1 day')}, went_wrong AS ${oldRuns('failed', '30 days')}
  DELETE FROM workflow WHERE id IN (SELECT id FROM went_well UNION ALL SELECT id FROM went_wrong)`;
