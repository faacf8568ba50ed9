import { problem } from '@drydock/contracts/platform/problem';
import type { Sql } from '@drydock/service/database/sql';

/**
 * Staff's way out of `needs_attention`: goes on where it stopped, in the direction it had, with fresh budgets. Ring afterwards.
 * Throws the problem `workflow_not_waiting`, also when somebody else has just decided.
 */
export const retryWorkflow = (sql: Sql, workflowId: string): Promise<void> => decide(sql, retrySql, [workflowId]);

/**
 * Staff's other way out: the resource is unlocked as it is and the workflow ends as failed with `abandoned`. A worker does the ending, within the
 * transaction of its `onEnd.failed`; ring afterwards. `detail`: what becomes of the resource, told from now on in place of the code's advice.
 * Throws as {@link retryWorkflow}.
 */
export const abandonWorkflow = (sql: Sql, workflowId: string, detail?: string): Promise<void> =>
  decide(sql, abandonSql, [workflowId, JSON.stringify({ code: 'abandoned', detail })]);

async function decide(sql: Sql, text: string, values: readonly unknown[]): Promise<void> {
  const rows = await sql.query(text, values);
  if (rows.length === 0) throw problem('workflow_not_waiting');
}

const dueNow = `status = 'queued', due_at = clock_timestamp(), dispatch_after = clock_timestamp() + interval '300 ms', claims_without_word = 0,
  settle_failures = 0, version = version + 1`;

const retrySql = `
  WITH retried AS (
    UPDATE workflow SET ${dueNow}, error = CASE WHEN direction <> 'forward' THEN error END,
      error_internal = CASE WHEN direction <> 'forward' THEN error_internal END
    WHERE id = $1::uuid AND status = 'needs_attention' RETURNING id, direction
  ), fresh AS (
    UPDATE workflow_step SET failures = 0, undo_failures = 0,
      status = CASE WHEN status = 'failed' AND retried.direction = 'forward' THEN 'pending' ELSE status END,
      started_at = CASE WHEN status = 'succeeded' OR retried.direction <> 'forward' THEN started_at END,
      finished_at = CASE WHEN status = 'succeeded' THEN finished_at WHEN status = 'failed' AND retried.direction = 'undo' THEN clock_timestamp() END
    FROM retried WHERE workflow_id = retried.id
  )
  SELECT id FROM retried`;

const abandonSql = `
  UPDATE workflow SET ${dueNow}, direction = 'abandon', error = $2::jsonb || jsonb_build_object('extra', jsonb_build_object('after', error ->> 'code'))
  WHERE id = $1::uuid AND status = 'needs_attention' RETURNING id`;
