import type { Sql } from '@drydock/service/database/sql';
import { type Hold, heldByUs, writeFenced } from './fenced';

/** Another lease's length from now, by Postgres' clock. */
export const renewLease = (sql: Sql, hold: Hold, leaseSeconds: number): Promise<void> =>
  writeFenced(
    sql,
    hold,
    `UPDATE workflow SET lease_until = clock_timestamp() + make_interval(secs => $3::float8) WHERE ${heldByUs} RETURNING id`,
    [leaseSeconds],
  );

export interface HandBack {
  /** Until it is due again. */
  afterSeconds: number;
  /** What went wrong, counted against the budget of what it was. Left out: nothing did. */
  failed?: { what: 'step' | 'undo'; step: string } | { what: 'end' };
}

/** The lease ends now, so that whoever is rung next may take the workflow. The worker is alive: claims without a word are forgotten. */
export const handBack = (sql: Sql, hold: Hold, { afterSeconds, failed }: HandBack): Promise<void> =>
  writeFenced(sql, hold, handBackSql, [
    afterSeconds,
    failed?.what ?? null,
    failed === undefined || failed.what === 'end' ? null : failed.step,
  ]);

const handBackSql = `
  WITH held AS (
    UPDATE workflow SET lease_until = NULL, claims_without_word = 0, version = version + 1,
      due_at = clock_timestamp() + make_interval(secs => $3::float8), dispatch_after = clock_timestamp() + make_interval(secs => $3::float8),
      settle_failures = settle_failures + CASE WHEN $4::text = 'end' THEN 1 ELSE 0 END
    WHERE ${heldByUs} RETURNING id
  ), counted AS (
    UPDATE workflow_step SET failures = failures + CASE WHEN $4::text = 'step' THEN 1 ELSE 0 END,
      undo_failures = undo_failures + CASE WHEN $4::text = 'undo' THEN 1 ELSE 0 END
    FROM held WHERE workflow_id = held.id AND name = $5::text
  )
  SELECT id FROM held`;

/**
 * Asynchronous commit: a progress bar that a crash of Postgres sets back by a moment harms nobody.
 * Zero rows are left to the heartbeat to notice.
 */
export const reportProgress = (sql: Sql, hold: Hold, percent: number): Promise<unknown> =>
  sql.query(
    `WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true))
     UPDATE workflow SET progress = greatest(progress, $3::int), version = version + 1 FROM quick WHERE ${heldByUs}`,
    [hold.id, hold.fence, percent],
  );

/**
 * The list of the code of today, `recorded` being the attempts that were on record before this claim (which may have begun a step of the older list).
 * What has succeeded stays as it is; nothing is left running.
 */
export const relistSteps = (sql: Sql, hold: Hold, names: readonly string[], recorded: Readonly<Record<string, number>>): Promise<void> =>
  writeFenced(sql, hold, relistSql, [JSON.stringify(names), JSON.stringify(recorded)]);

const relistSql = `
  WITH held AS (UPDATE workflow SET version = version + 1 WHERE ${heldByUs} RETURNING id),
  wanted AS (SELECT name, ordinality - 1 AS position FROM jsonb_array_elements_text($3::jsonb) WITH ORDINALITY AS step(name, ordinality)),
  gone AS (
    DELETE FROM workflow_step USING held WHERE workflow_id = held.id AND status <> 'succeeded' AND name NOT IN (SELECT name FROM wanted)
  ), listed AS (
    INSERT INTO workflow_step (workflow_id, name, position) SELECT held.id, wanted.name, wanted.position FROM held, wanted
    ON CONFLICT (workflow_id, name) DO UPDATE SET position = excluded.position,
      attempts = coalesce(($4::jsonb ->> excluded.name)::int, 0),
      status = CASE WHEN workflow_step.status = 'succeeded' THEN 'succeeded' ELSE 'pending' END
  )
  SELECT id FROM held`;

/** Begins one step outside a claim or checkpoint, which is where steps usually begin. */
export const beginStep = (sql: Sql, hold: Hold, step: string): Promise<void> => writeFenced(sql, hold, beginStepSql, [step]);

const beginStepSql = `
  WITH held AS (UPDATE workflow SET version = version + 1 WHERE ${heldByUs} RETURNING id)
  UPDATE workflow_step SET status = 'running', attempts = attempts + 1, started_at = coalesce(started_at, clock_timestamp())
  FROM held WHERE workflow_id = held.id AND name = $3 RETURNING name`;
