import type { Sql } from '@drydock/service/database/sql';
import type { QueueKind } from './queue';

export interface DueWorkflow {
  id: string;
  org_id: string;
  dispatch_number: number;
  traceparent: string | null;
}

export interface DueQuery {
  kind: QueueKind;
  /** At most so many. */
  limit: number;
  /** How long a job may take to be claimed before another is enqueued. */
  enqueueAgainSeconds: number;
  /** The queue is empty: an enqueued workflow that was not claimed has lost its job. */
  queueEmpty: boolean;
  /** Organisations that may take no more slots of this worker: a job for them would be declined. */
  fullOrgs: readonly string[];
}

/**
 * Marks the next due workflows as dispatched and returns them, in the order to enqueue: one of each organisation, then a second of each, so that the 5,000 of one
 * do not starve another. Rows that another sweep holds are passed over. A row is due when nobody has a live lease on it.
 *
 * Asynchronous commit: a mark that a crash of Postgres takes back means one job too many.
 */
export const takeDueWorkflows = (sql: Sql, { kind, limit, enqueueAgainSeconds, queueEmpty, fullOrgs }: DueQuery): Promise<DueWorkflow[]> =>
  sql.query<DueWorkflow>(takeDueSql, [limit, enqueueAgainSeconds, queueEmpty, kind === 'interactive', fullOrgs]);

/** A job that has just gone out may not be in the queue yet. */
const enqueueLandsMs = 500;

const isAwaited = `status = 'queued' AND fence = 0 AND start_by IS NOT NULL`;

const isDue = `status IN ('queued', 'running') AND due_at <= clock_timestamp() AND (lease_until IS NULL OR lease_until < clock_timestamp())
  AND (dispatch_after <= clock_timestamp() OR ($3::boolean AND dispatched_at < clock_timestamp() - interval '${enqueueLandsMs} ms'))
  AND (${isAwaited}) = $4::boolean AND NOT (${isAwaited} AND start_by <= clock_timestamp())`;

// The organisations with unfinished work are found by hopping through the index, one probe each, however many rows one of them has.
const takeDueSql = `
  WITH RECURSIVE orgs AS (
    (SELECT org_id FROM workflow WHERE status IN ('queued', 'running') ORDER BY org_id LIMIT 1)
    UNION ALL
    SELECT (SELECT w.org_id FROM workflow w WHERE w.status IN ('queued', 'running') AND w.org_id > orgs.org_id ORDER BY w.org_id LIMIT 1)
    FROM orgs WHERE orgs.org_id IS NOT NULL
  ), turns AS (
    SELECT own.id, own.due_at, own.turn FROM orgs CROSS JOIN LATERAL (
      SELECT w.id, w.due_at, row_number() OVER (ORDER BY w.due_at, w.id) AS turn FROM workflow w
      WHERE w.org_id = orgs.org_id AND ${isDue} ORDER BY w.due_at, w.id LIMIT $1::int
    ) own WHERE orgs.org_id <> ALL ($5::uuid[]) ORDER BY own.turn, own.due_at, own.id LIMIT $1::int
  ), quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
  held AS (
    SELECT workflow.id, turns.turn, turns.due_at FROM turns JOIN workflow ON workflow.id = turns.id, quick WHERE ${isDue.replace(/\bdue_at\b/g, 'workflow.due_at')}
    FOR UPDATE OF workflow SKIP LOCKED
  ), marked AS (
    UPDATE workflow SET dispatch_number = dispatch_number + 1, dispatched_at = clock_timestamp(),
      dispatch_after = clock_timestamp() + make_interval(secs => $2::float8)
    FROM held WHERE workflow.id = held.id
    RETURNING workflow.id, workflow.org_id, workflow.dispatch_number, workflow.traceparent, held.turn, held.due_at
  )
  SELECT id, org_id, dispatch_number, traceparent FROM marked ORDER BY turn, due_at, id`;

/** The job did not get through: due again after a pause, so that a queue that is away is not hammered. */
export const enqueueFailed = (sql: Sql, workflowId: string): Promise<unknown> =>
  sql.query(`UPDATE workflow SET dispatch_after = clock_timestamp() + interval '1 second' WHERE id = $1::uuid`, [workflowId]);

/** A job that came while its organisation had its share of this worker: due at once, for a worker that has a slot for it. */
export const jobDeclined = (sql: Sql, workflowId: string): Promise<unknown> =>
  sql.query(
    `UPDATE workflow SET dispatch_after = clock_timestamp() WHERE id = $1::uuid AND status IN ('queued', 'running') AND dispatch_after > clock_timestamp()`,
    [workflowId],
  );

/** What nobody took up in time, oldest first. */
export const overdueStarts = async (sql: Sql): Promise<string[]> => {
  const rows = await sql.query<{ id: string }>(
    `SELECT id FROM workflow WHERE status = 'queued' AND fence = 0 AND start_by <= clock_timestamp() ORDER BY start_by LIMIT 100`,
  );
  return rows.map((row) => row.id);
};

/** How many workflows of each kind wait for staff; 0 for `kinds` of which none does. */
export const countNeedingAttention = async (sql: Sql, kinds: readonly string[]): Promise<Map<string, number>> => {
  const rows = await sql.query<{ kind: string; count: number }>(
    `SELECT kind, count(*)::int AS count FROM workflow WHERE status = 'needs_attention' GROUP BY kind`,
  );
  return new Map([...kinds.map((kind) => [kind, 0] as const), ...rows.map(({ kind, count }) => [kind, count] as const)]);
};
