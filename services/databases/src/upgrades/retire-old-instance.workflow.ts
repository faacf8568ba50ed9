import { fencedCall, type WorkflowRun } from '@drydock/workflow/definition';
import { removeSchedule, saveSchedule } from '@drydock/workflow/store';
import { z } from 'zod';
import { defineWorkflow, refOf, type WorkContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { databaseResourceKey } from '../databases/database.types';
import { definitely } from '../providers/database-errors';

/**
 * The name of the schedule that removes the old instance of a database. One schedule is enough, because the removal of
 * the latest old instance also removes all earlier ones.
 */
export const retireScheduleOf = (databaseId: string): string => `retire_old_instance:${databaseId}`;

/** Removes the frozen old instance of an upgrade or a restore, and then the schedule that started this workflow. */
export const retireOldInstanceWorkflow = defineWorkflow({
  kind: 'retire_old_instance',
  // The schema accepts other fields, because schedules that earlier versions made have more.
  input: z.object({ upgradeId: z.string() }),
})
  .step('retire', {
    timeoutSeconds: 120,
    run: (step, context) => definitely(context.provider.retireOld(refOf(step), step.input, fencedCall(step))),
    commit: (tx, step, _output, context) => removeSchedule(context.database.sql(tx), retireScheduleOf(step.subject.id)),
  })
  .build();

/** Schedules the removal of the old instance of a finished upgrade or restore, by default for a day later. */
export async function retireLater(
  context: WorkContext,
  tx: Tx,
  run: WorkflowRun<unknown>,
  upgradeId: string,
): Promise<void> {
  const { orgId, mode, subject } = run;
  const [sql, name] = [context.database.sql(tx), retireScheduleOf(subject.id)];
  // An existing schedule is removed first, because `saveSchedule` would keep its time, and this instance would be
  // removed too early.
  await removeSchedule(sql, name);
  await saveSchedule(sql, {
    name,
    kind: retireOldInstanceWorkflow.kind,
    resourceKey: databaseResourceKey(subject.id),
    subject,
    orgId,
    mode,
    input: { upgradeId },
    // The schedule repeats hourly, because another workflow may have locked the database when the schedule is due. The
    // workflow removes the schedule once it has removed the old instance.
    interval: { intervalSeconds: 3_600 },
    firstRunAt: new Date(context.now().getTime() + context.oldInstanceSeconds * 1_000),
  });
}
