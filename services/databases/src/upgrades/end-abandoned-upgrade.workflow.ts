import type { Sql } from '@drydock/service/database';
import { fail, fencedCall, type WorkflowRun } from '@drydock/workflow/definition';
import { startWorkflow } from '@drydock/workflow/store';
import { z } from 'zod';
import { defineWorkflow, refOf } from '../context/context';
import { changeStatus, recordVersion } from '../databases/database.store';
import { databaseResourceKey } from '../databases/database.types';
import { definitely } from '../providers/database-errors';
import { DatabaseProviderError } from '../providers/database-provider';
import { retireLater } from './retire-old-instance.workflow';

/**
 * Ends an upgrade or a restore that staff have abandoned or that Drydock has no record of. Only the agent knows whether
 * the database was switched. If it was, the upgrade or restore is completed, otherwise undone. Once this workflow has
 * called the agent, the agent refuses the worker of the abandoned workflow, whose fence is lower.
 */
export const endAbandonedUpgradeWorkflow = defineWorkflow({
  kind: 'end_abandoned_upgrade',
  input: z.strictObject({ upgradeId: z.string() }),
})
  .pointOfNoReturn()
  .step('end', {
    timeoutSeconds: 1_800,
    // A killed instance may need minutes to restart, and nothing can be undone until it answers. Twelve attempts with
    // the pauses between them last long enough.
    attemptsMax: 12,
    run: async (step, context) => {
      const { provider } = context;
      const [ref, call] = [refOf(step), fencedCall(step)];
      const isSwitched = await definitely(provider.abandon(ref, step.input, call)).then(
        () => false,
        (error: unknown) => {
          if (error instanceof DatabaseProviderError && error.refusal === 'switched') return true;
          throw error;
        },
      );
      if (isSwitched) await definitely(provider.finish(ref, step.input, call));
      const hosted = await provider.describe(ref, step.signal);
      if (hosted === null) throw fail('database_not_available', { internal: 'the host has no such database' });
      return { major: hosted.major, isSwitched };
    },
    commit: async (tx, step, { major, isSwitched }, context) => {
      await recordVersion(tx, step.subject.id, String(major));
      if (isSwitched) await retireLater(context, tx, step, step.input.upgradeId);
    },
  })
  .onEnd({
    succeeded: (tx, run) => changeStatus(tx, run.subject.id, 'available'),
    failed: (tx, run) =>
      changeStatus(
        tx,
        run.subject.id,
        'failed',
        'An upgrade or a restore was given up and could not be brought to an end. Ask support.',
      ),
  })
  .build();

/**
 * Starts the workflow that ends an upgrade or a restore. If the caller's transaction also abandons that upgrade or
 * restore, the lock on the database passes to the new workflow without a gap. The database keeps its status until the
 * new workflow ends.
 */
export async function beginEndOfUpgrade(sql: Sql, { workflowId, ...run }: WorkflowRun<unknown>): Promise<void> {
  const { orgId, mode, subject, actorKeyId, requestId } = run;
  const started = await startWorkflow(sql, {
    kind: endAbandonedUpgradeWorkflow.kind,
    definition: endAbandonedUpgradeWorkflow,
    resourceKey: databaseResourceKey(subject.id),
    input: { upgradeId: workflowId },
    orgId,
    mode,
    subject,
    actorKeyId,
    requestId,
  });
  if (!started.started)
    throw new Error(`workflow ${started.workflowId} holds the database of an upgrade that is just ending`);
}
