import type { Sql } from '@drydock/service/database/sql';
import { type Hold, heldByUs, writeFenced } from './fenced';
import type { WorkflowProblem } from './step-error';

/**
 * The step is done and, in the same statement, the next one begun (its attempt counted before its effect). `next` is null after the last one.
 * Word from the worker: from here on a crash counts anew.
 */
export const completeStep = (
  sql: Sql,
  hold: Hold,
  done: { step: string; output: unknown; next: string | null; progress: number },
): Promise<void> => writeFenced(sql, hold, completeSql, [done.step, JSON.stringify(done.output), done.next, done.progress]);

const completeSql = `
  WITH held AS (
    UPDATE workflow SET version = version + 1, claims_without_word = 1, progress = greatest(progress, $6::int) WHERE ${heldByUs} RETURNING id
  ), done AS (
    UPDATE workflow_step SET status = 'succeeded', output = $4::jsonb, finished_at = clock_timestamp()
    FROM held WHERE workflow_id = held.id AND name = $3
  ), begun AS (
    UPDATE workflow_step SET status = 'running', attempts = attempts + 1, started_at = coalesce(started_at, clock_timestamp())
    FROM held WHERE workflow_id = held.id AND name = $5::text
  )
  SELECT id FROM held`;

/** The end. A lease, a fence and a finished status never stand together. */
export const finishWorkflow = (
  sql: Sql,
  hold: Hold,
  end: { status: 'succeeded' | 'failed'; error: WorkflowProblem | null },
): Promise<void> => writeFenced(sql, hold, finishSql, [end.status, ...errorValues(end.error)]);

const finishSql = `
  UPDATE workflow SET status = $3, error = $4::jsonb, error_internal = $5::text, finished_at = clock_timestamp(), lease_until = NULL, version = version + 1,
    progress = CASE WHEN $3 = 'succeeded' THEN 100 ELSE progress END
  WHERE ${heldByUs} RETURNING id`;

/** From here on the steps are taken back; the step that failed keeps its failure. */
export const beginUndo = (sql: Sql, hold: Hold, step: string, problem: WorkflowProblem): Promise<void> =>
  writeFenced(sql, hold, beginUndoSql, [step, ...errorValues(problem)]);

const beginUndoSql = `
  WITH held AS (
    UPDATE workflow SET direction = 'undo', error = $4::jsonb, error_internal = $5::text, version = version + 1, claims_without_word = 1
    WHERE ${heldByUs} RETURNING id
  ), failed AS (
    UPDATE workflow_step SET status = 'failed', finished_at = clock_timestamp() FROM held WHERE workflow_id = held.id AND name = $3
  )
  SELECT id FROM held`;

export const completeUndo = (sql: Sql, hold: Hold, step: string): Promise<void> => writeFenced(sql, hold, completeUndoSql, [step]);

const completeUndoSql = `
  WITH held AS (UPDATE workflow SET version = version + 1, claims_without_word = 1 WHERE ${heldByUs} RETURNING id),
  undone AS (
    UPDATE workflow_step SET undone_at = clock_timestamp(), status = CASE WHEN status = 'failed' THEN 'failed' ELSE 'undone' END
    FROM held WHERE workflow_id = held.id AND name = $3
  )
  SELECT id FROM held`;

/** Nobody works on it any more and its resource stays locked until staff decides. */
export const parkWorkflow = (sql: Sql, hold: Hold, park: { step: string | null; problem: WorkflowProblem }): Promise<void> =>
  writeFenced(sql, hold, parkSql, [park.step, ...errorValues(park.problem)]);

// What is being undone has its own failed step, which must not be overwritten; what staff abandoned stays so.
const parkSql = `
  WITH held AS (
    UPDATE workflow SET status = 'needs_attention', lease_until = NULL, version = version + 1, error_internal = $5::text,
      error = CASE WHEN direction = 'forward' THEN $4::jsonb ELSE coalesce(error, $4::jsonb) END
    WHERE ${heldByUs} RETURNING id, direction
  ), failed AS (
    UPDATE workflow_step SET status = 'failed', finished_at = clock_timestamp()
    FROM held WHERE workflow_id = held.id AND name = $3::text AND held.direction = 'forward'
  )
  SELECT id FROM held`;

const errorValues = (problem: WorkflowProblem | null): [string | null, string | null] => {
  if (problem === null) return [null, null];
  const { internal, ...told } = problem;
  const text = JSON.stringify(told, (_, value: unknown) => (typeof value === 'string' ? holdable(value) : value));
  return [text, internal === undefined ? null : holdable(internal)];
};

/** What a provider says ends up in these, and Postgres holds neither a NUL nor half a surrogate pair: the end of a workflow must not fail for it. */
const holdable = (text: string): string => Buffer.from(text).toString().replaceAll('\0', '\ufffd');
