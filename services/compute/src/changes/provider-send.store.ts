import type { Sql } from '@drydock/service/database';

interface Sender {
  workflowId: string;
  fence: string;
}

/**
 * Notes that the workflow's change is about to be sent. Returns false if this worker has lost its claim or a send is
 * already noted. The caller must then send nothing. The note and a new claim both lock the row of the workflow. So at
 * most one worker sends, even if a frozen worker wakes after another worker has continued.
 */
export async function noteSend(sql: Sql, { workflowId, fence }: Sender): Promise<boolean> {
  const rows = await sql.query(
    `INSERT INTO provider_sends (workflow_id, fence, sent_at)
     SELECT id, fence, clock_timestamp() FROM workflow WHERE id = $1::uuid AND fence = $2::bigint
     AND lease_until > clock_timestamp() FOR UPDATE
     ON CONFLICT (workflow_id) DO NOTHING RETURNING workflow_id`,
    [workflowId, fence],
  );
  return rows.length === 1;
}

/**
 * Assigns the note of an earlier worker to this worker, before the change is sent again. Returns false if this worker
 * has lost its claim.
 */
export async function takeOverSend(sql: Sql, { workflowId, fence }: Sender): Promise<boolean> {
  const rows = await sql.query(
    `UPDATE provider_sends SET fence = workflow.fence FROM workflow
     WHERE workflow_id = workflow.id AND workflow.id = $1::uuid AND workflow.fence = $2::bigint
     AND lease_until > clock_timestamp() RETURNING workflow_id`,
    [workflowId, fence],
  );
  return rows.length === 1;
}

/** Removes the note of a send that was refused, so that the change may be sent again. */
export const withdrawSend = (sql: Sql, { workflowId, fence }: Sender): Promise<unknown> =>
  sql.query('DELETE FROM provider_sends WHERE workflow_id = $1::uuid AND fence = $2::bigint', [workflowId, fence]);

/**
 * Forgets notes that are older than two days, if their workflow is gone or ended more than two days ago. Younger notes
 * are kept for staff who examine a failure.
 */
export const forgetSends = (sql: Sql): Promise<unknown> =>
  sql.query(
    `DELETE FROM provider_sends WHERE sent_at < clock_timestamp() - interval '2 days' AND NOT EXISTS (
       SELECT FROM workflow WHERE id = workflow_id
         AND (status NOT IN ('succeeded', 'failed') OR finished_at > clock_timestamp() - interval '2 days'))`,
  );

/**
 * Seconds since the search for the answer to a noted send began, by Postgres' clock. The first call begins the search
 * and gets 0. Null if no send is noted.
 */
export async function secondsOfSearch(sql: Sql, workflowId: string): Promise<number | null> {
  const [row] = await sql.query<{ seconds: number }>(
    `UPDATE provider_sends SET looking_since = coalesce(looking_since, clock_timestamp()) WHERE workflow_id = $1::uuid
     RETURNING extract(epoch FROM clock_timestamp() - looking_since)::float8 AS seconds`,
    [workflowId],
  );
  return row?.seconds ?? null;
}
