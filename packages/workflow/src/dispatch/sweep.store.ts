import type { Sql } from '@drydock/service/database';
import { ranInFuture } from '../store/schedules';
import type { UnfinishedCount } from '../store/telemetry';
import type { QueueKind } from './queue';

export interface DueWorkflow {
  id: string;
  org_id: string;
  kind: string;
  traceparent: string | null;
}

export interface DueQuery {
  kind: QueueKind;
  limit: number;
  /** Seconds after which a workflow that was enqueued and not claimed is enqueued again. */
  enqueueAgainSeconds: number;
  /** Whether the queue is empty. If it is, an enqueued workflow without a claim has probably lost its job. */
  queueEmpty: boolean;
  /** The organisations that already use all of their slots in this worker. A job for them would have to wait. */
  fullOrgs: readonly string[];
  /** The organisation at which the query begins, in the order of their ids. */
  fromOrg: string;
  /**
   * Whether each organisation with due work has already got a job in this sweep. If so, the query may take several
   * workflows of an organisation. A query that covers all organisations may take several in any case.
   */
  hadTurns: boolean;
}

export interface DuePage {
  due: DueWorkflow[];
  /** The organisation at which the next query continues. Null if this query has come to the last organisation. */
  nextOrg: string | null;
}

/** An id that is smaller than every organisation's. */
export const firstOrg = '00000000-0000-0000-0000-000000000000';

/** The most organisations that one query covers, so that its cost has a limit however many organisations wait. */
export const orgsMax = 100;
/** About the most rows that one query reads. The organisations with due work share them. */
const rowsMax = 1_000;

/**
 * Marks the next due workflows as dispatched, and returns them in the order in which to enqueue them: one of each
 * organisation, then a second of each. Calls that begin at the `nextOrg` of the previous call reach every organisation
 * in turn. Rows that another sweep has locked are skipped. The commit is asynchronous, because the loss of a mark in a
 * crash of Postgres causes only one job too many.
 */
export async function takeDueWorkflows(sql: Sql, query: DueQuery): Promise<DuePage> {
  const { kind, limit, enqueueAgainSeconds, queueEmpty, fullOrgs, fromOrg, hadTurns } = query;
  const values = [
    limit,
    enqueueAgainSeconds,
    queueEmpty,
    kind === 'interactive',
    fullOrgs,
    fromOrg,
    hadTurns,
    fromOrg === firstOrg,
  ];
  const [page] = await sql.query<{ due: DueWorkflow[]; next_org: string | null }>(takeDueSql, values);
  return { due: page?.due ?? [], nextOrg: page?.next_org ?? null };
}

/** Milliseconds in which a job that was just sent may still be on its way to the queue. */
const enqueueLandsMs = 500;

const isAwaited = `status = 'queued' AND fence = 0 AND start_by IS NOT NULL`;

// The condition uses statement_timestamp(). For clock_timestamp(), which changes during the statement, Postgres would
// not use the index.
const isDue = `status IN ('queued', 'running') AND due_at <= statement_timestamp()
  AND (lease_until IS NULL OR lease_until < statement_timestamp())
  AND (dispatch_after <= statement_timestamp()
    OR ($3::boolean AND dispatched_at < statement_timestamp() - interval '${enqueueLandsMs} ms'))
  AND (${isAwaited}) = $4::boolean AND NOT (${isAwaited} AND start_by <= statement_timestamp())`;

// The query makes one look-up in the index for each organisation with queued or running work, however many rows the
// organisation has. The next query begins at the organisation after the last one that this query covers.
const takeDueSql = `
  WITH RECURSIVE orgs (org_id, place) AS (
    (SELECT org_id, 1 FROM workflow WHERE status IN ('queued', 'running') AND org_id >= $6::uuid
      ORDER BY org_id LIMIT 1)
    UNION ALL
    SELECT next.org_id, orgs.place + 1 FROM orgs CROSS JOIN LATERAL (
      SELECT w.org_id FROM workflow w WHERE w.status IN ('queued', 'running') AND w.org_id > orgs.org_id
      ORDER BY w.org_id LIMIT 1
    ) next WHERE orgs.place <= ${orgsMax}
  ), ready AS MATERIALIZED (
    SELECT orgs.org_id, orgs.place FROM orgs CROSS JOIN LATERAL (
      SELECT w.id FROM workflow w WHERE w.org_id = orgs.org_id AND ${isDue} ORDER BY w.due_at, w.id LIMIT 1
    ) oldest WHERE orgs.place <= ${orgsMax} AND orgs.org_id <> ALL ($5::uuid[]) ORDER BY orgs.place LIMIT $1::int
  ), counted AS MATERIALIZED (
    SELECT CASE WHEN $7::boolean OR ($8::boolean AND NOT EXISTS (SELECT FROM orgs WHERE place > ${orgsMax}))
        THEN least($1::int, 1 + ${rowsMax} / greatest(1, count(*)::int)) ELSE 1 END AS each_max,
      CASE WHEN count(*) = $1::int THEN max(place) ELSE ${orgsMax} END AS last_place FROM ready
  ), turns AS (
    SELECT own.id, own.due_at, own.turn FROM ready CROSS JOIN LATERAL (
      SELECT w.id, w.due_at, row_number() OVER (ORDER BY w.due_at, w.id) AS turn FROM workflow w
      WHERE w.org_id = ready.org_id AND ${isDue} ORDER BY w.due_at, w.id LIMIT (SELECT each_max FROM counted)
    ) own ORDER BY own.turn, own.due_at, own.id LIMIT $1::int
  ), quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
  held AS (
    SELECT workflow.id, turns.turn, turns.due_at FROM turns JOIN workflow ON workflow.id = turns.id, quick
    WHERE ${isDue.replace(/\bdue_at\b/g, 'workflow.due_at')}
    FOR UPDATE OF workflow SKIP LOCKED
  ), marked AS (
    UPDATE workflow SET dispatched_at = clock_timestamp(),
      dispatch_after = clock_timestamp() + make_interval(secs => $2::float8)
    FROM held WHERE workflow.id = held.id
    RETURNING workflow.id, workflow.org_id, workflow.kind, workflow.traceparent, held.turn, held.due_at
  )
  SELECT (SELECT org_id::text FROM orgs, counted WHERE place = last_place + 1) AS next_org,
    coalesce(json_agg(json_build_object(
      'id', id, 'org_id', org_id, 'kind', kind, 'traceparent', traceparent)
      ORDER BY turn, due_at, id), '[]'::json) AS due FROM marked`;

/**
 * Whether a schedule is due, and whether any workflow is queued or running. If both are false, the sweep looks for no
 * work. A schedule whose last run is in the future counts as due; see {@link ranInFuture}.
 */
export async function lookForWork(sql: Sql): Promise<{ schedules: boolean; workflows: boolean }> {
  const [found] = await sql.query<{ schedules: boolean; workflows: boolean }>(lookSql);
  return found ?? { schedules: false, workflows: false };
}

const lookSql = `
  SELECT EXISTS (SELECT FROM workflow WHERE status IN ('queued', 'running')) AS workflows,
    EXISTS (SELECT FROM workflow_schedule WHERE next_run_at <= statement_timestamp())
    OR EXISTS (SELECT FROM workflow_schedule WHERE ${ranInFuture}) AS schedules`;

/**
 * Records that the job could not be added. The sweep tries again after a second at the earliest, so that an unreachable
 * queue is not called all the time.
 */
export const enqueueFailed = (sql: Sql, workflowId: string): Promise<unknown> =>
  sql.query(`UPDATE workflow SET dispatch_after = clock_timestamp() + interval '1 second' WHERE id = $1::uuid`, [
    workflowId,
  ]);

/**
 * Records that this worker declined a job because the organisation uses its whole share. Another worker with a free
 * slot may enqueue the workflow again at once.
 */
export const jobDeclined = (sql: Sql, workflowId: string): Promise<unknown> =>
  sql.query(
    `UPDATE workflow SET dispatch_after = clock_timestamp() WHERE id = $1::uuid AND status IN ('queued', 'running')
      AND dispatch_after > clock_timestamp()`,
    [workflowId],
  );

/** At most 100 workflows that no worker has claimed by their `start_by`, the oldest first. */
export const overdueStarts = async (sql: Sql): Promise<string[]> => {
  const rows = await sql.query<{ id: string }>(
    `SELECT id FROM workflow WHERE status = 'queued' AND fence = 0 AND start_by <= statement_timestamp()
      ORDER BY start_by LIMIT 100`,
  );
  return rows.map((row) => row.id);
};

/** The number of unfinished workflows of each kind, with zeros for kinds in `kinds` without any. */
export const countUnfinished = async (sql: Sql, kinds: readonly string[]): Promise<UnfinishedCount[]> => {
  const rows = await sql.query<UnfinishedCount>(
    `SELECT kind, count(*) FILTER (WHERE status = 'queued')::int AS queued,
        count(*) FILTER (WHERE status = 'running')::int AS running,
       count(*) FILTER (WHERE status = 'needs_attention')::int AS "needsAttention",
       greatest(0, coalesce(extract(epoch FROM clock_timestamp() - min(due_at) FILTER
         (WHERE status <> 'needs_attention' AND (lease_until IS NULL OR lease_until < clock_timestamp()))), 0))::float8
           AS "dueSeconds"
     FROM workflow WHERE status IN ('queued', 'running', 'needs_attention') GROUP BY kind`,
  );
  const missing = kinds.filter((kind) => !rows.some((row) => row.kind === kind));
  return [...rows, ...missing.map((kind) => ({ kind, queued: 0, running: 0, needsAttention: 0, dueSeconds: 0 }))];
};
