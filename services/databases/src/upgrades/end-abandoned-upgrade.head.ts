import type { Sql } from '@drydock/database/sql';
import type { WorkflowRun } from '@drydock/workflow/definition';
import { startWorkflow } from '@drydock/workflow/start-workflow';
import { z } from 'zod';
import { databaseResourceKey } from '../databases/database-names';

export const endAbandonedUpgradeHead = {
  kind: 'end_abandoned_upgrade',
  input: z.strictObject({ upgradeId: z.string() }),
  steps: [{ name: 'end' }],
} as const;

/**
 * In the transaction that ends an abandoned upgrade: the database goes from one workflow's hold into the next one's, and stays `provisioning` until it is
 * whole again.
 */
export async function beginEndOfUpgrade(sql: Sql, { workflowId, ...run }: WorkflowRun<unknown>): Promise<void> {
  const { orgId, mode, subject, actorKeyId, requestId } = run;
  const started = await startWorkflow(sql, {
    kind: endAbandonedUpgradeHead.kind,
    definition: endAbandonedUpgradeHead,
    resourceKey: databaseResourceKey(subject.id),
    input: { upgradeId: workflowId },
    orgId,
    mode,
    subject,
    actorKeyId,
    requestId,
  });
  if (!started.started) throw new Error(`workflow ${started.workflowId} holds the database of an upgrade that is just ending`);
}
