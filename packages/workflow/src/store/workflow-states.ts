import { problem } from '@drydock/contracts/platform/problem';
import type { Sql } from '@drydock/service/database';
import { auditing } from '@drydock/service/effects';
import { LeaseLost, type WorkflowProblem } from '../definition/step-error';
import type { CancelledRow, Claim, ClaimKey, ClaimLimits, NewWorkflow, Release } from './claim.types';
import { fenceRefused } from './telemetry';
import { type Statement, stepIsIn, telling, toldColumns, workflowIsIn } from './workflow-transitions';

// All statements that write the status, direction or steps of a workflow are in this file. A statement changes only
// rows in the states that workflow-transitions.ts lists for it (workflow-states.test.ts). A statement of a worker that
// has claimed the workflow also names the fence of the claim.

/** Keeps a worker from writing after it has lost its claim: $1 is the workflow, $2 the claim's fence. */
const claimedFor = (statement: Statement): string =>
  `workflow.id = $1::uuid AND workflow.fence = $2::bigint AND ${workflowIsIn(statement)}`;

/**
 * Runs a statement that returns a row only while the claim is the workflow's latest. Throws {@link LeaseLost} if no row
 * is returned.
 */
async function writeFenced(sql: Sql, claim: ClaimKey, text: string, values: readonly unknown[] = []): Promise<void> {
  const rows = await sql.query(text, [claim.id, claim.fence, ...values]);
  if (rows.length > 0) return;
  fenceRefused(claim.kind);
  throw new LeaseLost(claim.id);
}

/** The condition of the unique index that allows a resource only one unfinished workflow. */
export const isUnfinished = `status IN ('queued', 'running', 'needs_attention')`;

/** Seconds after which the sweep may enqueue a workflow that was accepted, retried or abandoned. */
const enqueueGraceSeconds = 0.3;

/** Inserts an accepted workflow, its steps and its audit entry. False if another workflow has locked the resource. */
export async function insertWorkflow(sql: Sql, row: NewWorkflow, stepNames: readonly string[]): Promise<boolean> {
  const { id, kind, resourceKey, subject, orgId, mode, input, actorKeyId, requestId, traceparent, startBy, audit } =
    row;
  const asked = [
    id,
    kind,
    resourceKey,
    subject.type,
    subject.id,
    orgId,
    mode,
    JSON.stringify(input),
    actorKeyId,
    requestId,
  ];
  const handling = [
    traceparent ?? null,
    startBy?.toISOString() ?? null,
    JSON.stringify(stepNames),
    enqueueGraceSeconds,
  ];
  const audited = audit === undefined ? [] : [audit.action, audit.target];
  const text =
    audit === undefined ? insertSql('') : insertSql(`, ${auditing('accepted', { action: '$15', target: '$16' })}`);
  return (await sql.query(text, [...asked, ...handling, ...audited])).length > 0;
}

const insertSql = (audited: string): string => `
  WITH accepted AS (
    INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, actor_key_id,
      request_id, traceparent, start_by, dispatch_after)
    VALUES ($1::uuid, $2, $3, $4, $5, $6::uuid, $7, $8::jsonb, $9::uuid, $10, $11, $12::timestamptz,
      clock_timestamp() + make_interval(secs => $14::float8))
    ON CONFLICT (resource_key) WHERE ${isUnfinished} DO NOTHING
    RETURNING ${toldColumns}
  ), ${telling('workflow.accepted', 'accepted')}, listed AS (
    INSERT INTO workflow_step (workflow_id, name, position)
    SELECT accepted.id, step.name, step.ordinality - 1
    FROM accepted, jsonb_array_elements_text($13::jsonb) WITH ORDINALITY AS step(name, ordinality)
  )${audited}
  SELECT id FROM accepted`;

/**
 * Claims a due workflow without a live lease, in one statement. The workflow gets a new fence and a lease by Postgres'
 * clock. The start of the step to run is written too, so that an attempt is counted before its work. Undefined if the
 * workflow cannot be claimed now, or belongs to another organisation than the job says.
 *
 * The commit is never asynchronous. If a crash of Postgres lost the commit, the same fence could be given out twice.
 */
export async function claimWorkflow(
  sql: Sql,
  job: { workflowId: string; orgId: string },
  limits: ClaimLimits,
): Promise<Claim | undefined> {
  const { leaseSeconds, stepNamesByKind, crashesMax } = limits;
  const [claim] = await sql.query<Claim>(claimSql, [
    job.workflowId,
    leaseSeconds,
    stepNamesByKind,
    crashesMax,
    job.orgId,
  ]);
  return claim;
}

// due_at is rounded to milliseconds, so one millisecond is tolerated. An expired lease counts as a crash of its worker.
// A row without steps gets the steps of its kind, and the first step begins.
const claimSql = `
  WITH claimed AS (
    UPDATE workflow SET status = 'running', fence = nextval('workflow_fence'),
      lease_until = clock_timestamp() + make_interval(secs => $2::float8),
      consecutive_crashes = consecutive_crashes + CASE WHEN lease_until IS NULL THEN 0 ELSE 1 END,
      started_at = coalesce(started_at, clock_timestamp()), version = version + 1
    WHERE id = $1::uuid AND org_id = $5::uuid AND ${workflowIsIn('claimWorkflow')}
    AND due_at <= clock_timestamp() + interval '1 ms'
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
    UPDATE workflow_step SET status = 'running', attempts = attempts + 1,
      started_at = coalesce(workflow_step.started_at, clock_timestamp())
    FROM claimed
    WHERE workflow_step.workflow_id = claimed.id AND ${stepIsIn('claimWorkflow', 'running')}
      AND claimed.direction = 'forward' AND claimed.consecutive_crashes < $4::int
      AND position = (SELECT min(position) FROM workflow_step WHERE workflow_id = claimed.id AND status <> 'succeeded')
  )
  SELECT id, kind, org_id, mode, subject_type, subject_id, input, actor_key_id, request_id, traceparent, direction,
    fence::text AS fence,
    consecutive_crashes, end_failures, progress, error, error_internal, extract(epoch
      FROM clock_timestamp() - due_at)::float8 AS delay_seconds,
    extract(epoch FROM clock_timestamp() - created_at)::float8 AS age_seconds,
    coalesce((SELECT extract(epoch FROM clock_timestamp() - max(finished_at)) FROM workflow_step
      WHERE workflow_id = claimed.id AND status = 'failed'), 0)::float8 AS undoing_seconds,
    coalesce((SELECT json_agg(json_build_object('name', name, 'status', status, 'attempts', attempts, 'failures',
      failures, 'undo_failures', undo_failures,
        'output', output, 'undone', undone_at IS NOT NULL, 'age_seconds',
          coalesce(extract(epoch FROM clock_timestamp() - started_at), 0)) ORDER BY position)
      FROM workflow_step WHERE workflow_id = claimed.id), '[]'::json) AS steps
  FROM claimed`;

/** Renews the lease for its full length from now, by Postgres' clock. */
export const renewLease = (sql: Sql, claim: ClaimKey, leaseSeconds: number): Promise<void> =>
  writeFenced(sql, claim, renewSql, [leaseSeconds]);

const renewSql = `
  UPDATE workflow SET lease_until = clock_timestamp() + make_interval(secs => $3::float8)
  WHERE ${claimedFor('renewLease')} RETURNING id`;

/**
 * Writes the progress. The commit is asynchronous, because the loss of progress in a crash of Postgres does no harm. If
 * the claim is lost, this statement writes nothing, and the next renewal of the lease reports the loss of the claim.
 */
export const reportProgress = (sql: Sql, claim: ClaimKey, percent: number): Promise<unknown> =>
  sql.query(progressSql, [claim.id, claim.fence, percent]);

const progressSql = `
  WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
  UPDATE workflow SET progress = greatest(progress, $3::int), version = version + 1 FROM quick
  WHERE ${claimedFor('reportProgress')}`;

/**
 * Replaces the recorded list of steps with the present code's. `recorded` has each step's attempts before this claim,
 * because the claim may have begun a step of the older list. A step that has succeeded keeps its status and output, and
 * no step is left running.
 */
export const relistSteps = (
  sql: Sql,
  claim: ClaimKey,
  names: readonly string[],
  recorded: Readonly<Record<string, number>>,
): Promise<void> => writeFenced(sql, claim, relistSql, [JSON.stringify(names), JSON.stringify(recorded)]);

const relistSql = `
  WITH ours AS (UPDATE workflow SET version = version + 1 WHERE ${claimedFor('relistSteps')} RETURNING id),
  wanted AS (SELECT name, ordinality - 1 AS position
    FROM jsonb_array_elements_text($3::jsonb) WITH ORDINALITY AS step(name, ordinality)),
  gone AS (
    DELETE FROM workflow_step USING ours
    WHERE workflow_id = ours.id AND ${stepIsIn('relistSteps', 'gone')} AND name NOT IN (SELECT name FROM wanted)
  ), listed AS (
    INSERT INTO workflow_step (workflow_id, name, position) SELECT ours.id, wanted.name, wanted.position
    FROM ours, wanted
    ON CONFLICT (workflow_id, name) DO UPDATE SET position = excluded.position,
      attempts = coalesce(($4::jsonb ->> excluded.name)::int, 0),
      status = CASE WHEN ${stepIsIn('relistSteps', 'pending')} THEN 'pending' ELSE workflow_step.status END
  )
  SELECT id FROM ours`;

/** Begins the next step after {@link relistSteps}. In every other case a claim or a checkpoint begins the step. */
export const beginStep = (sql: Sql, claim: ClaimKey, step: string): Promise<void> =>
  writeFenced(sql, claim, beginStepSql, [step]);

const beginStepSql = `
  WITH ours AS (UPDATE workflow SET version = version + 1 WHERE ${claimedFor('beginStep')} RETURNING id)
  UPDATE workflow_step SET status = 'running', attempts = attempts + 1,
    started_at = coalesce(started_at, clock_timestamp())
  FROM ours WHERE workflow_id = ours.id AND name = $3 AND ${stepIsIn('beginStep', 'running')} RETURNING name`;

/**
 * Records that the step is done and begins the next one in the same statement, so that an attempt is counted before its
 * work. `next` is null after the last step. The worker is alive, so the count of crashes begins again at 0.
 */
export const completeStep = (
  sql: Sql,
  claim: ClaimKey,
  done: { step: string; output: unknown; next: string | null; progress: number },
): Promise<void> =>
  writeFenced(sql, claim, completeSql, [done.step, JSON.stringify(done.output), done.next, done.progress]);

const completeSql = `
  WITH ours AS (
    UPDATE workflow SET version = version + 1, consecutive_crashes = 0, progress = greatest(progress, $6::int)
    WHERE ${claimedFor('completeStep')} RETURNING id
  ), done AS (
    UPDATE workflow_step SET status = 'succeeded', output = $4::jsonb, finished_at = clock_timestamp()
    FROM ours WHERE workflow_id = ours.id AND name = $3 AND ${stepIsIn('completeStep', 'succeeded')}
  ), begun AS (
    UPDATE workflow_step SET status = 'running', attempts = attempts + 1,
      started_at = coalesce(started_at, clock_timestamp())
    FROM ours WHERE workflow_id = ours.id AND name = $5::text AND ${stepIsIn('completeStep', 'running')}
  )
  SELECT id FROM ours`;

/** Records that a step has failed for good and that the workflow is undone from now on. */
export const beginUndo = (sql: Sql, claim: ClaimKey, step: string, failure: WorkflowProblem): Promise<void> =>
  writeFenced(sql, claim, beginUndoSql, [step, ...errorValues(failure)]);

const beginUndoSql = `
  WITH ours AS (
    UPDATE workflow SET direction = 'undo', error = $4::jsonb, error_internal = $5::text, version = version + 1,
      consecutive_crashes = 0
    WHERE ${claimedFor('beginUndo')} RETURNING id
  ), failed AS (
    UPDATE workflow_step SET status = 'failed', finished_at = clock_timestamp()
    FROM ours WHERE workflow_id = ours.id AND name = $3 AND ${stepIsIn('beginUndo', 'failed')}
  )
  SELECT id FROM ours`;

/** Records that the step was undone. The failed step keeps the status `failed`. */
export const completeUndo = (sql: Sql, claim: ClaimKey, step: string): Promise<void> =>
  writeFenced(sql, claim, completeUndoSql, [step]);

const completeUndoSql = `
  WITH ours AS (UPDATE workflow SET version = version + 1, consecutive_crashes = 0 WHERE ${claimedFor('completeUndo')}
    RETURNING id),
  undone AS (
    UPDATE workflow_step SET undone_at = clock_timestamp(),
      status = CASE WHEN ${stepIsIn('completeUndo', 'undone')} THEN 'undone' ELSE status END
    FROM ours WHERE workflow_id = ours.id AND name = $3
  )
  SELECT id FROM ours`;

/** Ends the lease, so that a worker can claim the workflow once it is due. The count of crashes begins again at 0. */
export const releaseClaim = (sql: Sql, claim: ClaimKey, { afterSeconds, failed }: Release): Promise<void> => {
  const step = failed === undefined || failed.what === 'end' ? null : failed.step;
  return writeFenced(sql, claim, releaseSql, [afterSeconds, failed?.what ?? null, step]);
};

const releaseSql = `
  WITH ours AS (
    UPDATE workflow SET lease_until = NULL, consecutive_crashes = 0, version = version + 1,
      due_at = clock_timestamp() + make_interval(secs => $3::float8),
        dispatch_after = clock_timestamp() + make_interval(secs => $3::float8),
      end_failures = end_failures + CASE WHEN $4::text = 'end' THEN 1 ELSE 0 END
    WHERE ${claimedFor('releaseClaim')} RETURNING id
  ), counted AS (
    UPDATE workflow_step SET failures = failures + CASE WHEN $4::text = 'step' THEN 1 ELSE 0 END,
      undo_failures = undo_failures + CASE WHEN $4::text = 'undo' THEN 1 ELSE 0 END
    FROM ours WHERE workflow_id = ours.id AND name = $5::text
  )
  SELECT id FROM ours`;

// A finished workflow has no lease.
const isEnded = `finished_at = clock_timestamp(), lease_until = NULL, version = version + 1`;

export const succeedWorkflow = (sql: Sql, claim: ClaimKey): Promise<void> => writeFenced(sql, claim, succeedSql);

const succeedSql = `
  WITH ended AS (
    UPDATE workflow SET status = 'succeeded', error = NULL, error_internal = NULL, progress = 100, ${isEnded}
    WHERE ${claimedFor('succeedWorkflow')} RETURNING ${toldColumns}
  ), ${telling('workflow.succeeded', 'ended')}
  SELECT id FROM ended`;

/** Ends a workflow that was undone or abandoned. */
export const failWorkflow = (sql: Sql, claim: ClaimKey, failure: WorkflowProblem): Promise<void> =>
  writeFenced(sql, claim, failSql, errorValues(failure));

const failSql = `
  WITH ended AS (
    UPDATE workflow SET status = 'failed', error = $3::jsonb, error_internal = $4::text, ${isEnded}
    WHERE ${claimedFor('failWorkflow')} RETURNING ${toldColumns}
  ), ${telling('workflow.failed', 'ended')}
  SELECT id FROM ended`;

/**
 * Parks a workflow for staff. Its resource stays locked until they decide. `step` is the step that could not continue;
 * null if the failure is not in a step.
 */
export const parkWorkflow = (
  sql: Sql,
  claim: ClaimKey,
  park: { step: string | null; problem: WorkflowProblem },
): Promise<void> => writeFenced(sql, claim, parkSql, [park.step, ...errorValues(park.problem)]);

// A workflow that is being undone keeps the error that caused the undo. An abandoned workflow keeps the error
// `abandoned`.
const parkSql = `
  WITH ours AS (
    UPDATE workflow SET status = 'needs_attention', lease_until = NULL, version = version + 1,
      error_internal = $5::text,
      error = CASE WHEN direction = 'forward' THEN $4::jsonb ELSE coalesce(error, $4::jsonb) END
    WHERE ${claimedFor('parkWorkflow')} RETURNING ${toldColumns}, direction
  ), ${telling('workflow.needs_attention', 'ours')}, failed AS (
    UPDATE workflow_step SET status = 'failed', finished_at = clock_timestamp()
    FROM ours WHERE workflow_id = ours.id AND name = $3::text AND ours.direction = 'forward'
    AND ${stepIsIn('parkWorkflow', 'failed')}
  )
  SELECT id FROM ours`;

/**
 * Replaces everything that Postgres cannot store. A provider's message may contain a NUL or half a surrogate pair,
 * which must not keep a workflow from ending.
 */
const holdable = (text: string): string => Buffer.from(text).toString().replaceAll('\0', '\ufffd');

/** The values of `error`, which customers see, and of `error_internal`, which staff see. */
function errorValues({ internal, ...told }: WorkflowProblem): [string, string | null] {
  const text = JSON.stringify(told, (_, value: unknown) => (typeof value === 'string' ? holdable(value) : value));
  return [text, internal === undefined ? null : holdable(internal)];
}

/**
 * Retries a workflow that waits for staff. It continues where it stopped, in the same direction, with all its attempts
 * again. The caller may enqueue the workflow; otherwise the sweep does. Throws `workflow_not_waiting` if the workflow
 * does not wait for staff, for example because another member of staff has just decided.
 */
export const retryWorkflow = (sql: Sql, workflowId: string): Promise<void> => decide(sql, retrySql, [workflowId]);

/**
 * Abandons a workflow that waits for staff. A worker then ends the workflow as failed with `abandoned`, and calls
 * `onEnd.failed` in the same transaction. The resource stays as it is and is unlocked. `detail` describes the resource
 * and replaces the advice of the problem code. The caller may enqueue the workflow. Throws `workflow_not_waiting`, as
 * {@link retryWorkflow} does.
 */
export const abandonWorkflow = (sql: Sql, workflowId: string, detail?: string): Promise<void> =>
  decide(sql, abandonSql, [workflowId, JSON.stringify({ code: 'abandoned', detail })]);

async function decide(sql: Sql, text: string, values: readonly unknown[]): Promise<void> {
  const rows = await sql.query(text, values);
  if (rows.length === 0) throw problem('workflow_not_waiting');
}

const dueNow = `status = 'queued', due_at = clock_timestamp(),
  dispatch_after = clock_timestamp() + make_interval(secs => ${enqueueGraceSeconds}),
  consecutive_crashes = 0, end_failures = 0, version = version + 1`;

const retrySql = `
  WITH retried AS (
    UPDATE workflow SET ${dueNow}, error = CASE WHEN direction <> 'forward' THEN error END,
      error_internal = CASE WHEN direction <> 'forward' THEN error_internal END
    WHERE id = $1::uuid AND ${workflowIsIn('retryWorkflow')} RETURNING ${toldColumns}, direction
  ), ${telling('workflow.retried', 'retried')}, fresh AS (
    UPDATE workflow_step SET failures = 0, undo_failures = 0,
      status = CASE WHEN ${stepIsIn('retryWorkflow', 'pending')}
      AND retried.direction = 'forward' THEN 'pending' ELSE status END,
      started_at = CASE WHEN status = 'succeeded' OR retried.direction <> 'forward' THEN started_at END,
      finished_at = CASE WHEN status = 'succeeded' THEN finished_at WHEN status = 'failed'
      AND retried.direction = 'undo' THEN clock_timestamp() END
    FROM retried WHERE workflow_id = retried.id
  )
  SELECT id FROM retried`;

const abandonSql = `
  UPDATE workflow SET ${dueNow}, direction = 'abandon',
    error = $2::jsonb || jsonb_build_object('extra', jsonb_build_object('after', error ->> 'code'))
  WHERE id = $1::uuid AND ${workflowIsIn('abandonWorkflow')} RETURNING id`;

/**
 * Fails a workflow whose `start_by` has passed (on Postgres' clock) and that nobody has claimed. Undefined if it was
 * claimed, has ended or still has time.
 */
export async function cancelWorkflow(
  sql: Sql,
  workflowId: string,
  failure: WorkflowProblem,
): Promise<CancelledRow | undefined> {
  const [row] = await sql.query<CancelledRow>(cancelSql, [workflowId, JSON.stringify({ code: failure.code })]);
  return row;
}

const cancelSql = `
  WITH ended AS (
    UPDATE workflow SET status = 'failed', error = $2::jsonb, finished_at = clock_timestamp(), version = version + 1
    WHERE id = $1::uuid AND ${workflowIsIn('cancelWorkflow')} AND fence = 0 AND start_by <= clock_timestamp()
    RETURNING ${toldColumns}, input
  ), ${telling('workflow.failed', 'ended')}
  SELECT id, kind, org_id, mode, subject_type, subject_id, input, actor_key_id, request_id FROM ended`;
