import type { Mode } from '@drydock/contracts/platform/values';
import { uuidv7 } from 'uuidv7';
import type { Sql } from '../database/sql';

export interface AuditRecord {
  orgId: string;
  mode: Mode;
  /** Null when Drydock itself did it, by a schedule. */
  actorKeyId: string | null;
  /** `backup.restore`: resource and verb. */
  action: string;
  /** The path of what it was done to: `/v1/sites/…`. */
  target: string;
  workflowId: string | null;
}

/** Notes what was accepted, in the transaction that accepts it: never for a refusal, never lost. Delivered to keys afterwards. */
export async function audit(sql: Sql, record: AuditRecord): Promise<void> {
  const { orgId, mode, actorKeyId, action, target, workflowId } = record;
  await sql.query(
    `INSERT INTO audit_outbox (id, org_id, mode, actor_key_id, action, target, workflow_id)
     VALUES ($1::uuid, $2::uuid, $3, $4::uuid, $5, $6, $7::uuid)`,
    [uuidv7(), orgId, mode, actorKeyId, action, target, workflowId],
  );
}
