import { EventEmitter } from 'node:events';
import { scaled } from '@drydock/process';
import type { Sql } from '@drydock/service/database';
import { withoutSpans } from '@drydock/service/telemetry';
import { Client } from 'pg';
import type { Log } from '../definition/definition';
import { messageOf } from '../definition/step-error';

/**
 * Postgres' notifications to this process. A lost notification only costs time, because every user of a listener also
 * polls.
 */
export interface WorkflowListener {
  /** Calls `heard` at each change of the workflow until the returned function is called. */
  onChange(workflowId: string, heard: () => void): () => void;
  onDue(heard: () => void): () => void;
  /** Calls `heard` at each message, and each time the listener has connected. */
  onMessage(heard: () => void): () => void;
  /**
   * Whether this process reports the number of unfinished workflows for all processes. Tries to take the reporter's
   * lock, which only one listener can hold.
   */
  isFirst(): Promise<boolean>;
  close(): Promise<void>;
}

const retryMs = 1_000;
/**
 * The advisory lock of the process that reports for all processes. A session holds the lock; after its end another
 * session can get the lock.
 */
const firstSql = `SELECT pg_try_advisory_lock(hashtext('workflow_reporter')) AS first`;

/**
 * Opens one connection for LISTEN. `connectionString` must lead to Postgres itself, not to a pooler in transaction
 * mode. The listener reconnects until it is closed. Each time it has connected, all callbacks run, because a message
 * may have been lost before.
 */
export function createListener({ connectionString, log }: { connectionString: string; log: Log }): WorkflowListener {
  const heard = new EventEmitter().setMaxListeners(0);
  let closed = false;
  let client: Client | undefined;
  let timer: NodeJS.Timeout | undefined;
  let first = false;

  const again = (): void => {
    client = undefined;
    first = false;
    if (!closed) timer ??= setTimeout(() => void connect(), retryMs).unref();
  };
  const connect = async (): Promise<void> => {
    timer = undefined;
    const fresh = new Client({
      connectionString,
      keepAlive: true,
      connectionTimeoutMillis: scaled(1_500),
      query_timeout: scaled(6_000),
      application_name: 'workflow-listener',
    });
    fresh.on('error', (error) => log.debug({ internal: messageOf(error) }, 'listener'));
    fresh.once('end', again);
    fresh.on('notification', ({ channel, payload }) => {
      heard.emit(channel === dueChannel ? dueEvent : changeEvent(payload ?? ''));
      heard.emit(messageEvent);
    });
    try {
      await fresh.connect();
      await fresh.query(`LISTEN ${changedChannel}; LISTEN ${dueChannel}`);
      client = fresh;
      if (closed) await fresh.end();
      else for (const event of heard.eventNames()) heard.emit(event);
    } catch (error) {
      log.debug({ internal: messageOf(error) }, 'listener could not connect');
      await fresh.end().catch(() => undefined);
      again();
    }
  };
  const on = (event: string, callback: () => void): (() => void) => {
    heard.on(event, callback);
    return () => heard.off(event, callback);
  };
  void connect();
  return {
    onChange: (workflowId, callback) => on(changeEvent(workflowId), callback),
    onDue: (callback) => on(dueEvent, callback),
    onMessage: (callback) => on(messageEvent, callback),
    isFirst: async () => {
      const asked = client;
      if (first || asked === undefined) return first;
      const { rows } = await asked.query<{ first: boolean }>(firstSql);
      if (asked === client) first = rows[0]?.first === true;
      return first;
    },
    close: async () => {
      closed = true;
      clearTimeout(timer);
      await client?.end();
    },
  };
}

const dueEvent = 'due';
const messageEvent = 'message';
/**
 * The name of the event for changes of a workflow. With the prefix, an id from another process is never the name
 * `error`. An emitter throws if nobody listens for `error`.
 */
const changeEvent = (workflowId: string): string => `change:${workflowId}`;

/**
 * The channels in Postgres. `workflow_changed` carries the id of a workflow, or nothing for a change without a
 * workflow. `workflow_due` carries nothing.
 */
export const changedChannel = 'workflow_changed';
export const dueChannel = 'workflow_due';

/** Milliseconds in which changes are collected for one statement. */
const gatherMs = 15;

/**
 * Makes the function that announces the change of a workflow to all listeners. The function must be called after the
 * commit, because a NOTIFY in the workflow's own transaction would hold a lock of the whole cluster until the commit is
 * on the disk. A lost notification does no harm, because every user of a listener also polls.
 */
export function createAnnouncer(sql: Sql, log: Log): (workflowId: string) => void {
  const gathered = new Set<string>();
  let timer: NodeJS.Timeout | undefined;
  const send = (): void => {
    timer = undefined;
    const ids = JSON.stringify([...gathered]);
    gathered.clear();
    withoutSpans(() => sql.query(notifySql, [changedChannel, ids])).catch((error: unknown) =>
      log.debug({ internal: messageOf(error) }, 'change was not announced'),
    );
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

/** Wakes the sweep of every listening worker. */
export const announceDue = (sql: Sql): Promise<unknown> => sql.query(`SELECT pg_notify($1, '')::text`, [dueChannel]);
