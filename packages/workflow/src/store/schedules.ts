import type { Database, Sql } from '@drydock/service/database';
import type { Log } from '../definition/definition';
import { messageOf } from '../definition/step-error';
import { startWorkflow } from './start-workflow';

export interface Schedule {
  /** The unique name, such as `nightly_backup:<site>`. */
  name: string;
  kind: string;
  resourceKey: string;
  subject: { type: string; id: string };
  orgId: string;
  mode: 'live' | 'sandbox';
  input: unknown;
  /** The time between two runs. `dailyAt` is `HH:MM` in UTC. */
  interval: { intervalSeconds: number } | { dailyAt: string };
  /** The time of the first run. By default the next sweep starts it. */
  firstRunAt?: Date;
}

/**
 * Creates or changes a schedule in the caller's transaction. The next run of an existing schedule keeps its time,
 * unless the schedule's interval changes.
 */
export async function saveSchedule(sql: Sql, schedule: Schedule): Promise<void> {
  const { name, kind, resourceKey, subject, orgId, mode, input, interval, firstRunAt } = schedule;
  const seconds = 'intervalSeconds' in interval ? interval.intervalSeconds : null;
  const daily = 'dailyAt' in interval ? interval.dailyAt : null;
  const values = [
    name,
    kind,
    resourceKey,
    subject.type,
    subject.id,
    orgId,
    mode,
    JSON.stringify(input),
    seconds,
    daily,
    firstRunAt?.toISOString() ?? null,
  ];
  await sql.query(saveSql, values);
}

const saveSql = `
  INSERT INTO workflow_schedule (name, kind, resource_key, subject_type, subject_id, org_id, mode, input,
    interval_seconds, daily_at, next_run_at)
  VALUES ($1, $2, $3, $4, $5, $6::uuid, $7, $8::jsonb, $9::int, $10::text,
    coalesce($11::timestamptz, clock_timestamp()))
  ON CONFLICT (name) DO UPDATE SET kind = excluded.kind, resource_key = excluded.resource_key,
    subject_type = excluded.subject_type,
    subject_id = excluded.subject_id, org_id = excluded.org_id, mode = excluded.mode, input = excluded.input,
    interval_seconds = excluded.interval_seconds, daily_at = excluded.daily_at,
    next_run_at = CASE WHEN (workflow_schedule.interval_seconds,
      workflow_schedule.daily_at) IS NOT DISTINCT FROM (excluded.interval_seconds, excluded.daily_at)
      THEN workflow_schedule.next_run_at ELSE excluded.next_run_at END`;

/** Removes a schedule. Work that it has started continues. */
export async function removeSchedule(sql: Sql, name: string): Promise<void> {
  await sql.query(`DELETE FROM workflow_schedule WHERE name = $1`, [name]);
}

interface ScheduleRow {
  name: string;
  kind: string;
  resource_key: string;
  subject_type: string;
  subject_id: string;
  org_id: string;
  mode: 'live' | 'sandbox';
  input: unknown;
  interval_seconds: number | null;
  daily_at: string | null;
  anchor_at: Date;
  now: Date;
}

/** Seconds until a schedule is tried again if its resource is locked or its workflow cannot be started. */
const busyPauseSeconds = 60;

/**
 * Starts due schedules. A separate transaction for each schedule writes its workflow and its next time. Resolves with
 * the ids of the started workflows.
 */
export async function runDueSchedules<Tx>(database: Database<Tx>, log: Log): Promise<string[]> {
  const started: string[] = [];
  let last = { next_run_at: new Date(0), name: '' };
  for (;;) {
    const page = await database.sql().query<DueSchedule>(dueSql, [last.next_run_at.toISOString(), last.name]);
    for (const { name } of page) {
      try {
        const id = await database.transaction((tx) => runSchedule(database.sql(tx), name));
        if (id !== undefined) started.push(id);
      } catch (error) {
        log.error({ schedule: name, internal: messageOf(error) }, 'schedule could not be started');
        await postpone(database.sql(), name).catch(() => undefined);
      }
    }
    const inOrder = page.filter(({ by_clock }) => by_clock);
    const end = inOrder.at(-1);
    if (end === undefined || inOrder.length < pageSize) return started;
    last = end;
  }
}

interface DueSchedule {
  name: string;
  next_run_at: Date;
  /** False if the schedule was found by its last run, which is in the future because a clock was wrong. */
  by_clock: boolean;
}

async function runSchedule(sql: Sql, name: string): Promise<string | undefined> {
  const [row] = await sql.query<ScheduleRow>(takeSql, [name]);
  if (row === undefined) return undefined;
  const { kind, mode, input, org_id: orgId, resource_key: resourceKey } = row;
  const subject = { type: row.subject_type, id: row.subject_id };
  const result = await startWorkflow(sql, {
    kind,
    resourceKey,
    subject,
    orgId,
    mode,
    input,
    actorKeyId: null,
    requestId: `schedule_${name}`,
  });
  if (!result.started) {
    await postpone(sql, name);
    return undefined;
  }
  const next = nextRunAt(
    row.daily_at === null
      ? { intervalSeconds: row.interval_seconds ?? 0, anchorAt: row.anchor_at }
      : { dailyAt: row.daily_at },
    row.now,
  );
  await sql.query(
    `UPDATE workflow_schedule SET next_run_at = $2::timestamptz, last_run_at = clock_timestamp(),
        last_workflow_id = $3::uuid WHERE name = $1`,
    [name, next.toISOString(), result.workflowId],
  );
  return result.workflowId;
}

const postpone = (sql: Sql, name: string): Promise<unknown> =>
  sql.query(
    `UPDATE workflow_schedule SET next_run_at = clock_timestamp() + make_interval(secs => $2::float8),
        last_run_at = least(last_run_at, clock_timestamp()) WHERE name = $1`,
    [name, busyPauseSeconds],
  );

const pageSize = 100;
// A last run in the future comes from a clock that was wrong and has been corrected since. The recorded next run is
// then wrong too, perhaps by years.
export const ranInFuture = `last_run_at > statement_timestamp() + interval '1 minute'`;
// Each half of the UNION uses an index of its own, so that only the schedules to run are read.
const dueSql = `
  (SELECT name, next_run_at, true AS by_clock FROM workflow_schedule WHERE next_run_at <= statement_timestamp()
    AND (next_run_at, name) > ($1::timestamptz, $2)
   ORDER BY next_run_at, name LIMIT ${pageSize})
  UNION ALL (SELECT name, next_run_at, false FROM workflow_schedule WHERE ${ranInFuture} LIMIT ${pageSize})`;
const takeSql = `
  SELECT *, clock_timestamp() AS now FROM workflow_schedule WHERE name = $1
  AND (next_run_at <= statement_timestamp() OR ${ranInFuture})
  FOR UPDATE SKIP LOCKED`;

export type ScheduleInterval = { intervalSeconds: number; anchorAt: Date } | { dailyAt: string };

/** The first run after `now`. Several missed runs are replaced by a single run. */
export function nextRunAt(interval: ScheduleInterval, now: Date): Date {
  if ('intervalSeconds' in interval) {
    const stepMs = interval.intervalSeconds * 1_000;
    const passed = Math.floor((now.getTime() - interval.anchorAt.getTime()) / stepMs);
    return new Date(interval.anchorAt.getTime() + (passed + 1) * stepMs);
  }
  const [hours, minutes] = interval.dailyAt.split(':').map(Number);
  const next = new Date(now);
  next.setUTCHours(hours ?? 0, minutes ?? 0, 0, 0);
  if (next <= now) next.setUTCDate(next.getUTCDate() + 1);
  return next;
}
