import type { Sql } from '@drydock/service/database';

interface Sender {
  workflowId: string;
  fence: string;
}

/**
 * Notes that the workflow's change is about to be sent. False if another worker has taken the workflow over, or has
 * noted a send: then nothing may be sent. The note and a new claim write the same row and so exclude each other. Of a
 * frozen worker and its successor, at most one ever sends.
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

/** Takes over the note of a worker that is gone, to send again. False if another worker has taken the workflow over. */
export async function takeOverSend(sql: Sql, { workflowId, fence }: Sender): Promise<boolean> {
  const rows = await sql.query(
    `UPDATE provider_sends SET fence = workflow.fence FROM workflow
     WHERE workflow_id = workflow.id AND workflow.id = $1::uuid AND workflow.fence = $2::bigint
     AND lease_until > clock_timestamp() RETURNING workflow_id`,
    [workflowId, fence],
  );
  return rows.length === 1;
}

/** Removes the note: the send was refused, so it may be sent again. */
export const withdrawSend = (sql: Sql, { workflowId, fence }: Sender): Promise<unknown> =>
  sql.query('DELETE FROM provider_sends WHERE workflow_id = $1::uuid AND fence = $2::bigint', [workflowId, fence]);

/** Forgets the sends of workflows that ended days ago. Staff who look into a recent failure still find its own. */
export const forgetSends = (sql: Sql): Promise<unknown> =>
  sql.query(
    `DELETE FROM provider_sends WHERE sent_at < clock_timestamp() - interval '2 days' AND NOT EXISTS (
       SELECT FROM workflow WHERE id = workflow_id
         AND (status NOT IN ('succeeded', 'failed') OR finished_at > clock_timestamp() - interval '2 days'))`,
  );

/**
 * Seconds since the search for the answer to a noted send began, by Postgres' clock; 0 at the first call. Null if
 * nothing was ever sent.
 */
export async function lookForSend(sql: Sql, workflowId: string): Promise<number | null> {
  const [row] = await sql.query<{ seconds: number }>(
    `UPDATE provider_sends SET looking_since = coalesce(looking_since, clock_timestamp()) WHERE workflow_id = $1::uuid
     RETURNING extract(epoch FROM clock_timestamp() - looking_since)::float8 AS seconds`,
    [workflowId],
  );
  return row?.seconds ?? null;
}
