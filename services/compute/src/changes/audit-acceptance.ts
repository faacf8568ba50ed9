import type { Database } from '@drydock/service/database/sql';
import { audit } from '@drydock/service/effects/audit';
import type { WorkflowRun } from '@drydock/workflow/definition/definition';
import type { Tx } from '../database.store';
import { serverPath } from '../servers/server-names';

/**
 * Writes the audit entry for the provider's acceptance, in the transaction of the checkpoint that records it. `action`:
 * resource and verb, such as `server.roll_back`.
 */
export function auditAcceptance(
  database: Database<Tx>,
  tx: Tx,
  run: WorkflowRun<unknown>,
  action: string,
): Promise<void> {
  const { orgId, mode, actorKeyId, workflowId, subject } = run;
  return audit(database.sql(tx), { orgId, mode, actorKeyId, action, target: serverPath(subject.id), workflowId });
}
