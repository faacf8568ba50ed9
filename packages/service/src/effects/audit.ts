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
  /** Null if a schedule of Drydock's own was the actor. */
  actorKeyId: string | null;
  /** The path of the changed thing: `/v1/sites/…`. */
  target: string;
}

/** A change that was made at once is an event too, with the action as its type. */
interface AtOnce {
  action: EventType;
  workflowId: null;
}

/** An audit entry about a workflow. A workflow has events of its own. */
interface OfWorkflow {
  /** `backup.restore`: resource and verb. */
  action: string;
  workflowId: string;
}

/**
 * Writes an audit entry for accepted work, in the transaction that accepts it: never for a refusal, and never lost. It
 * is delivered to keys afterwards.
 */
export async function audit(sql: Sql, record: AuditRecord): Promise<void> {
  const { orgId, mode, actorKeyId, action, target, workflowId } = record;
  await sql.query(`${insertSql} VALUES ($1::uuid, $2::uuid, $3, $4::uuid, $5, $6, $7::uuid)`, [
    ...[uuidv7(), orgId, mode, actorKeyId, action, target, workflowId],
  ]);
}

/**
 * Writes the audit entry within the statement that accepts a workflow. `accepted`: its rows, with `id`, `org_id`,
 * `mode` and `actor_key_id`; `action` and `target`: SQL.
 */
export const auditing = (accepted: string, { action, target }: Record<'action' | 'target', string>): string =>
  `audited AS (${insertSql} SELECT ${uuidv7Sql}, org_id, mode, actor_key_id, ${action}, ` +
  `${target}, id FROM ${accepted})`;

const insertSql = 'INSERT INTO audit_outbox (id, org_id, mode, actor_key_id, action, target, workflow_id)';

let oldestAt: string | null = null;
metrics
  .getMeter('@drydock/service')
  .createObservableGauge('audit.oldest_undelivered', {
    unit: 's',
    description: 'Age of the oldest audit entry that keys does not have',
  })
  .addCallback((result) => result.observe(secondsSince(oldestAt)));

/** Seconds since the outbox's oldest row; 0 without one. */
export const secondsSince = (at: string | null): number =>
  at === null ? 0 : Math.max(0, (Date.now() - Date.parse(at)) / 1_000);

/** A timestamp as the contract writes it. */
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
