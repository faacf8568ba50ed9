import type { Sql } from '@drydock/service/database/sql';

export interface Schedule {
  /** Unique, such as `nightly_backup:<site>`. */
  name: string;
  kind: string;
  resourceKey: string;
  subject: { type: string; id: string };
  orgId: string;
  mode: 'live' | 'sandbox';
  input: unknown;
  /** How often; `dailyAt` is `HH:MM` in UTC. */
  rhythm: { intervalSeconds: number } | { dailyAt: string };
  /** Default: at the next sweep. */
  firstRunAt?: Date;
}

/** Creates or changes a schedule, in the caller's transaction. The next run of one that exists stays unless its rhythm changes. */
export async function saveSchedule(sql: Sql, schedule: Schedule): Promise<void> {
  const { name, kind, resourceKey, subject, orgId, mode, input, rhythm, firstRunAt } = schedule;
  const interval = 'intervalSeconds' in rhythm ? rhythm.intervalSeconds : null;
  const daily = 'dailyAt' in rhythm ? rhythm.dailyAt : null;
  const values = [
    name,
    kind,
    resourceKey,
    subject.type,
    subject.id,
    orgId,
    mode,
    JSON.stringify(input),
    interval,
    daily,
    firstRunAt?.toISOString() ?? null,
  ];
  await sql.query(saveSql, values);
}

const saveSql = `
  INSERT INTO workflow_schedule (name, kind, resource_key, subject_type, subject_id, org_id, mode, input, interval_seconds, daily_at, next_run_at)
  VALUES ($1, $2, $3, $4, $5, $6::uuid, $7, $8::jsonb, $9::int, $10::text, coalesce($11::timestamptz, clock_timestamp()))
  ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, resource_key = excluded.resource_key, subject_type = excluded.subject_type,
    subject_id = excluded.subject_id, org_id = excluded.org_id, mode = excluded.mode, input = excluded.input,
    interval_seconds = excluded.interval_seconds, daily_at = excluded.daily_at,
    next_run_at = CASE WHEN (workflow_schedule.interval_seconds, workflow_schedule.daily_at) IS NOT DISTINCT FROM (excluded.interval_seconds, excluded.daily_at)
      THEN workflow_schedule.next_run_at ELSE excluded.next_run_at END`;

/** What it has started goes on. */
export async function removeSchedule(sql: Sql, name: string): Promise<void> {
  await sql.query(`DELETE FROM workflow_schedule WHERE name = $1`, [name]);
}
