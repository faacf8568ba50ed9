import type { Mode } from '@drydock/contracts/platform/values';
import type { Sql } from '@drydock/service/database/sql';
import type { Doorbell } from './doorbell';
import type { WorkflowProblem } from './step-error';

export interface StepRow {
  name: string;
  status: 'pending' | 'running' | 'succeeded' | 'failed' | 'undone';
  attempts: number;
  failures: number;
  undo_failures: number;
  output: unknown;
  undone: boolean;
  /** Since its first start; 0 when it has none. */
  age_seconds: number;
}

/** A workflow that is ours until its lease ends. `steps` are as they were just before the claim. */
export interface Claim {
  id: string;
  kind: string;
  org_id: string;
  mode: Mode;
  subject_type: string;
  subject_id: string;
  input: unknown;
  actor_key_id: string | null;
  request_id: string;
  traceparent: string | null;
  direction: 'forward' | 'undo' | 'abandon';
  fence: string;
  claims_without_word: number;
  settle_failures: number;
  progress: number;
  error: Omit<WorkflowProblem, 'internal'> | null;
  error_internal: string | null;
  delay_seconds: number;
  /** Since a step failed for good, or since staff had its undoing tried again; 0 while nothing is taken back. */
  undoing_seconds: number;
  steps: StepRow[];
}

export interface ClaimLimits {
  leaseSeconds: number;
  /** Claims in a row whose worker died, until the workflow is taken for poison. */
  deathsMax: number;
  /** Step names of every kind that this worker knows, as JSON. */
  stepNamesByKind: string;
}

/**
 * One statement, one round trip: takes a due workflow whose lease is nobody's, with a fresh fence and a lease by Postgres' clock, and writes the start of the
 * step to run (attempts count before the effect). Undefined when there is nothing to take: finished, not due, somebody else's, too late, unknown, of
 * another organisation than the ring says.
 *
 * Never with asynchronous commit: a fence that a crash of Postgres took back could be given out twice.
 */
export async function claimWorkflow(sql: Sql, { workflowId, orgId }: Doorbell, limits: ClaimLimits): Promise<Claim | undefined> {
  const [claim] = await sql.query<Claim>(claimSql, [workflowId, limits.leaseSeconds, limits.stepNamesByKind, limits.deathsMax, orgId]);
  return claim;
}

// due_at has milliseconds and is rounded, hence the millisecond of grace. A row without steps gets its kind's, the first one as running.
const claimSql = `
  WITH claimed AS (
    UPDATE workflow SET status = 'running', fence = nextval('workflow_fence'), lease_until = clock_timestamp() + make_interval(secs => $2::float8),
      claims_without_word = claims_without_word + 1, started_at = coalesce(started_at, clock_timestamp()), version = version + 1
    WHERE id = $1::uuid AND org_id = $5::uuid AND status IN ('queued', 'running') AND due_at <= clock_timestamp() + interval '1 ms'
      AND (lease_until IS NULL OR lease_until < clock_timestamp())
      AND NOT (status = 'queued' AND fence = 0 AND start_by IS NOT NULL AND start_by <= clock_timestamp())
    RETURNING *
  ), listed AS (
    INSERT INTO workflow_step (workflow_id, name, position, status, attempts, started_at)
    SELECT claimed.id, step.name, step.ordinality - 1, CASE WHEN step.ordinality = 1 THEN 'running' ELSE 'pending' END,
      CASE WHEN step.ordinality = 1 THEN 1 ELSE 0 END, CASE WHEN step.ordinality = 1 THEN clock_timestamp() END
    FROM claimed, jsonb_array_elements_text($3::jsonb -> claimed.kind) WITH ORDINALITY AS step(name, ordinality)
    WHERE claimed.direction = 'forward' AND NOT EXISTS (SELECT FROM workflow_step WHERE workflow_id = claimed.id)
  ), begun AS (
    UPDATE workflow_step SET status = 'running', attempts = attempts + 1, started_at = coalesce(workflow_step.started_at, clock_timestamp())
    FROM claimed
    WHERE workflow_step.workflow_id = claimed.id AND claimed.direction = 'forward' AND claimed.claims_without_word <= $4::int
      AND position = (SELECT min(position) FROM workflow_step WHERE workflow_id = claimed.id AND status <> 'succeeded')
  )
  SELECT id, kind, org_id, mode, subject_type, subject_id, input, actor_key_id, request_id, traceparent, direction, fence::text AS fence,
    claims_without_word, settle_failures, progress, error, error_internal, extract(epoch FROM clock_timestamp() - due_at)::float8 AS delay_seconds,
    coalesce((SELECT extract(epoch FROM clock_timestamp() - max(finished_at)) FROM workflow_step WHERE workflow_id = claimed.id AND status = 'failed'), 0)::float8 AS undoing_seconds,
    coalesce((SELECT json_agg(json_build_object('name', name, 'status', status, 'attempts', attempts, 'failures', failures, 'undo_failures', undo_failures,
        'output', output, 'undone', undone_at IS NOT NULL, 'age_seconds', coalesce(extract(epoch FROM clock_timestamp() - started_at), 0)) ORDER BY position)
      FROM workflow_step WHERE workflow_id = claimed.id), '[]'::json) AS steps
  FROM claimed`;
