import type { AuditEntry, EventType } from '@drydock/contracts/keys/events';
import type { Mode } from '@drydock/contracts/platform/values';
import { metrics } from '@opentelemetry/api';
import { uuidv7 } from 'uuidv7';
import { type Sql, uuidv7Sql } from '../database/sql';
import type { Outbox, OutboxRow } from './outbox-delivery';

export type AuditRecord = Acting & (AtOnce | OfWorkflow);

interface Acting {
  orgId: string;
  mode: Mode;
  /** The key of the caller. Null if Drydock itself or a command of the staff made the change. */
  actorKeyId: string | null;
  /** The path of the changed resource, such as `/v1/sites/…`. */
  target: string;
}

/** An audit entry about a change that was made at once. It also becomes an event, with the action as its type. */
interface AtOnce {
  action: EventType;
  workflowId: null;
}

/** An audit entry about a workflow. It becomes no event, because a workflow has events of its own. */
interface OfWorkflow {
  /** A resource and a verb, such as `backup.restore`. */
  action: string;
  workflowId: string;
}

/**
 * Writes an audit entry for an accepted change, in the transaction that accepts the change. So a refused change has no
 * entry, and no entry is lost. The entry is delivered to the keys service afterwards.
 */
export async function audit(sql: Sql, record: AuditRecord): Promise<void> {
  const { orgId, mode, actorKeyId, action, target, workflowId } = record;
  await sql.query(`${insertSql} VALUES ($1::uuid, $2::uuid, $3, $4::uuid, $5, $6, $7::uuid)`, [
    ...[uuidv7(), orgId, mode, actorKeyId, action, target, workflowId],
  ]);
}

/**
 * A CTE `audited` that writes the audit entry in the statement that accepts a workflow. `accepted` is the name of the
 * CTE that returns the workflow's row, with `id`, `org_id`, `mode` and `actor_key_id`. `action` and `target` are SQL
 * expressions.
 */
export const auditing = (accepted: string, { action, target }: Record<'action' | 'target', string>): string =>
  `audited AS (${insertSql} SELECT ${uuidv7Sql}, org_id, mode, actor_key_id, ${action}, ` +
  `${target}, id FROM ${accepted})`;

/**
 * A CTE `audited` that writes the audit entry of a change that Drydock itself has made at once. `changed` is the name
 * of the CTE that returns the `org_id` and `mode` of the changed row. There is no entry if `action` is null. `action`
 * and `target` are SQL expressions.
 */
export const auditingChange = (changed: string, { action, target }: Record<'action' | 'target', string>): string =>
  `audited AS (${insertSql} SELECT ${uuidv7Sql}, org_id, mode::text, NULL, ${action}, ${target}, NULL ` +
  `FROM ${changed} WHERE ${action} IS NOT NULL)`;

const insertSql = 'INSERT INTO audit_outbox (id, org_id, mode, actor_key_id, action, target, workflow_id)';

let oldestAt: string | null = null;
metrics
  .getMeter('@drydock/service')
  .createObservableGauge('audit.oldest_undelivered', {
    unit: 's',
    description: 'Age of the oldest audit entry that keys does not have',
  })
  .addCallback((result) => result.observe(secondsSince(oldestAt)));

/** The age in seconds of an outbox's oldest row, which was written at `at`. An empty outbox has the age 0. */
export const secondsSince = (at: string | null): number =>
  at === null ? 0 : Math.max(0, (Date.now() - Date.parse(at)) / 1_000);

/** SQL for a timestamp in the contract's form: RFC 3339 in UTC, with milliseconds. */
export const timestampSql = (column: string): string =>
  `to_char(${column} AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')`;

interface AuditRow extends Omit<AuditEntry, 'at'>, OutboxRow {
  mode: Mode;
}

export const auditOutbox: Outbox<AuditRow> = {
  name: 'audit entries',
  path: '/internal/audit',
  selectSql: `
    SELECT seq::text, id::text, org_id::text, mode, actor_key_id::text, action, target, workflow_id::text,
      ${timestampSql('at')} AS at
    FROM audit_outbox ORDER BY audit_outbox.seq LIMIT $1::int`,
  entryOf: ({ seq: _seq, ...entry }) => entry,
  deleteSql: 'DELETE FROM audit_outbox WHERE seq = ANY($1::bigint[])',
  observe: (at) => {
    oldestAt = at;
  },
};
