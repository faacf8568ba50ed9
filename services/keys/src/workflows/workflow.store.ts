import { eventDays, type WorkflowSummary, type WorkflowSummaryFilter } from '@drydock/contracts/keys/events';
import { firstIdOf, type Mode, timeOfId } from '@drydock/contracts/platform/values';
import type { Sql } from '@drydock/service/database';
import { timestampSql } from '@drydock/service/effects';

/**
 * Updates the list of workflows from events that have just been numbered. A workflow that has ended stays ended,
 * whatever event follows.
 */
export async function noteWorkflows(sql: Sql, seqs: readonly string[]): Promise<void> {
  if (seqs.length > 0) await sql.query(noteSql, [seqs]);
}

const isOver = `status IN ('succeeded', 'failed')`;

const noteSql = `
  INSERT INTO workflows (id, org_id, mode, kind, status, resource, actor_key_id, error, updated_at)
  SELECT DISTINCT ON (id) id, org_id, mode, kind, status, resource, actor_key_id, error, at FROM (
    SELECT (workflow ->> 'id')::uuid AS id, org_id, mode, workflow ->> 'kind' AS kind, resource, actor_key_id,
      nullif(workflow -> 'error', 'null') AS error, at, seq,
      CASE type WHEN 'workflow.succeeded' THEN 'succeeded' WHEN 'workflow.failed' THEN 'failed' WHEN
        'workflow.needs_attention' THEN 'needs_attention'
        ELSE 'unfinished' END AS status
    FROM events WHERE seq = ANY ($1::bigint[]) AND jsonb_typeof(workflow) = 'object'
  ) told ORDER BY id, ${isOver} DESC, seq DESC
  ON CONFLICT (id) DO UPDATE SET status = excluded.status, error = excluded.error, updated_at = excluded.updated_at
  WHERE NOT workflows.${isOver}`;

interface Owner {
  orgId: string;
  mode: Mode;
}

type Row = Omit<WorkflowSummary, 'url' | 'created_at'>;

const columns = `id::text, kind, status, resource, actor_key_id::text, error,
  ${timestampSql('updated_at')} AS updated_at`;

const summaryOf = (row: Row): WorkflowSummary => ({
  ...row,
  url: `${row.resource}/workflows/${row.id}`,
  created_at: timeOfId(row.id).toISOString(),
});

/**
 * Lists workflows, newest first, beginning after the workflow `after`. The query contains only the conditions that the
 * filter has, so that it can use the index for one of them.
 */
export async function listWorkflows(
  sql: Sql,
  { orgId, mode }: Owner,
  { after, take }: { after: string | null; take: number },
  { status, kind, resource, created_after: from, created_before: to }: WorkflowSummaryFilter,
): Promise<WorkflowSummary[]> {
  const values: unknown[] = [orgId, mode, take];
  const bound = (value: unknown): string => `$${values.push(value)}`;
  const conditions = ['org_id = $1::uuid', 'mode = $2::mode'];
  if (after !== null) conditions.push(`id < ${bound(after)}::uuid`);
  if (from !== undefined) conditions.push(`id >= ${bound(firstIdOf(from))}::uuid`);
  if (to !== undefined) conditions.push(`id < ${bound(firstIdOf(to))}::uuid`);
  if (kind !== undefined) conditions.push(`kind = ${bound(kind)}`);
  if (resource !== undefined) conditions.push(`resource = ${bound(resource)}`);
  const select = (more = ''): string =>
    `SELECT * FROM workflows WHERE ${conditions.join(' AND ')}${more} ORDER BY workflows.id DESC LIMIT $3::int`;
  // The query reads a range of the index for each status. Otherwise a search for a rare status would walk through the
  // workflows of all other statuses.
  const found =
    status === undefined
      ? `(${select()}) found`
      : `unnest(${bound(status)}::text[]) AS wanted (wanted_status), ` +
        `LATERAL (${select(' AND status = wanted_status')}) found`;
  const rows = await sql.query<Row>(`SELECT ${columns} FROM ${found} ORDER BY found.id DESC LIMIT $3::int`, values);
  return rows.map(summaryOf);
}

/** Null if the workflow belongs to another organisation or the other mode, or if none of its events has arrived. */
export async function findWorkflow(sql: Sql, { orgId, mode }: Owner, id: string): Promise<WorkflowSummary | null> {
  const text = `SELECT ${columns} FROM workflows WHERE id = $3::uuid AND org_id = $1::uuid AND mode = $2::mode`;
  const [row] = await sql.query<Row>(text, [orgId, mode, id]);
  return row === undefined ? null : summaryOf(row);
}

/**
 * Removes workflows that ended so long ago that their events have been removed too. Resolves with their number, at most
 * `max`.
 */
export async function purgeWorkflows(sql: Sql, max: number): Promise<number> {
  const removed = await sql.query(
    `DELETE FROM workflows WHERE id IN (SELECT id FROM workflows
        WHERE updated_at < statement_timestamp() - interval '${eventDays} days' AND ${isOver}
       ORDER BY updated_at LIMIT $1::int FOR UPDATE SKIP LOCKED) RETURNING id`,
    [max],
  );
  return removed.length;
}
