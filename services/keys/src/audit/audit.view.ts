import type { AuditEntry } from '@drydock/contracts/keys/audit-log';
import type { AuditRow } from './audit.store';

export const viewAudit = (row: AuditRow): AuditEntry => ({
  id: row.id,
  org_id: row.orgId,
  actor_key_id: row.actorKeyId,
  action: row.action,
  target: row.target,
  workflow_id: row.workflowId,
  at: row.at.toISOString(),
});
