import type { Database, Sql } from '@drydock/service/database/sql';
import type { Log } from './log';
import { nextRunAt } from './next-run-at.rules';
import { startWorkflow } from './start-workflow';
import { messageOf } from './step-error';

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

/** A resource that is busy, or a schedule that cannot be started, is tried again then. */
const busyPauseSeconds = 60;

/** Starts what the clock says, each schedule in a transaction of its own: its workflow and its next time, both or neither. Returns the started ids. */
export async function runDueSchedules<Tx>(database: Database<Tx>, log: Log): Promise<string[]> {
  const started: string[] = [];
  let last = '';
  for (;;) {
    const page = await database.sql().query<{ name: string }>(dueSql, [last]);
    for (const { name } of page) {
      last = name;
      try {
        const id = await database.transaction((tx) => runSchedule(database.sql(tx), name));
        if (id !== undefined) started.push(id);
      } catch (error) {
        log.error({ schedule: name, internal: messageOf(error) }, 'schedule could not be started');
        await postpone(database.sql(), name).catch(() => undefined);
      }
    }
    if (page.length < pageSize) return started;
  }
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
    row.daily_at === null ? { intervalSeconds: row.interval_seconds ?? 0, anchorAt: row.anchor_at } : { dailyAt: row.daily_at },
    row.now,
  );
  await sql.query(
    `UPDATE workflow_schedule SET next_run_at = $2::timestamptz, last_run_at = clock_timestamp(), last_workflow_id = $3::uuid WHERE name = $1`,
    [name, next.toISOString(), result.workflowId],
  );
  return result.workflowId;
}

const postpone = (sql: Sql, name: string): Promise<unknown> =>
  sql.query(
    `UPDATE workflow_schedule SET next_run_at = clock_timestamp() + make_interval(secs => $2::float8), last_run_at = least(last_run_at, clock_timestamp()) WHERE name = $1`,
    [name, busyPauseSeconds],
  );

const pageSize = 100;
// What ran in the future ran by a clock that has been put right since: its next time is as wrong, perhaps by years.
const isDue = `(next_run_at <= clock_timestamp() OR last_run_at > clock_timestamp() + interval '1 minute')`;
const dueSql = `SELECT name FROM workflow_schedule WHERE ${isDue} AND name > $1 ORDER BY name LIMIT ${pageSize}`;
const takeSql = `SELECT *, clock_timestamp() AS now FROM workflow_schedule WHERE name = $1 AND ${isDue} FOR UPDATE SKIP LOCKED`;
