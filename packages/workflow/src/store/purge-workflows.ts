import type { Sql } from '@drydock/service/database';

/**
 * The days for which workflows are kept after their end, except those that {@link forgetRuns} removes earlier. A
 * workflow is kept for longer than a site's backup (`retentionDaysMax`), so that the workflow that took a backup can
 * always be found.
 */
const keptDays = 120;

/** The most workflows that one statement removes, so that no statement locks many rows for long. */
const batchMax = 100;

const purgeSql = `
  DELETE FROM workflow WHERE id IN (
    SELECT id FROM workflow WHERE finished_at < statement_timestamp() - interval '${keptDays} days'
    AND status IN ('succeeded', 'failed')
    ORDER BY finished_at LIMIT ${batchMax} FOR UPDATE SKIP LOCKED
  ) RETURNING id`;

/**
 * Removes at most `batchMax` workflows that ended more than 120 days ago, with their steps. Resolves with whether there
 * may be more. Workers that purge at the same time do not wait for each other, because each skips rows that another has
 * locked.
 */
export const purgeWorkflows = async (sql: Sql): Promise<boolean> => (await sql.query(purgeSql)).length === batchMax;

/**
 * Removes old runs of one of the platform's own workflows (about `platform` or a `deploy_target`), which schedules
 * start again and again. Successful runs are removed after a day, failed runs after 30 days. Each run of the platform's
 * workflows calls this function, so one batch of each status suffices.
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
