import type { Sql } from '@drydock/service/database/sql';
import type { Log } from './log';
import { messageOf } from './step-error';

/** Postgres channels. Payload of the first is a workflow id; the second wakes sweeps. */
export const changedChannel = 'workflow_changed';
export const dueChannel = 'workflow_due';

/** Changes within this time become one statement. */
const gatherMs = 15;

/**
 * Tells listeners of other processes, after the commit and in nobody's way: a NOTIFY within the transaction would hold a lock of the whole cluster through its
 * fsync. One that is lost is made good by the listeners' clock.
 */
export function createAnnouncer(sql: Sql, log: Log): (workflowId: string) => void {
  const gathered = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const send = (): void => {
    timer = undefined;
    const ids = JSON.stringify([...gathered]);
    gathered.clear();
    sql
      .query(notifySql, [changedChannel, ids])
      .catch((error: unknown) => log.debug({ internal: messageOf(error) }, 'change was not announced'));
  };
  return (workflowId) => {
    gathered.add(workflowId);
    if (timer === undefined) timer = setTimeout(send, gatherMs).unref();
  };
}

const notifySql = `
  WITH quick AS MATERIALIZED (SELECT set_config('synchronous_commit', 'off', true)),
  sent AS (SELECT pg_notify($1, id) FROM quick, jsonb_array_elements_text($2::jsonb) AS change(id))
  SELECT count(*)::int AS count FROM sent`;

/** Wakes the sweep of whichever worker listens. */
export const announceDue = (sql: Sql): Promise<unknown> => sql.query(`SELECT pg_notify($1, '')::text`, [dueChannel]);
