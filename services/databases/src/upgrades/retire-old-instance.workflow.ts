import { fencedCall, type WorkflowRun } from '@drydock/workflow/definition/definition';
import { removeSchedule, saveSchedule } from '@drydock/workflow/store/schedules';
import { z } from 'zod';
import type { Tx } from '../database.store';
import { databaseResourceKey } from '../databases/database-names';
import { definitely } from '../databases/definite-failure';
import { defineWorkflow, refOf, type WorkContext } from '../databases/work';

/** The last upgrade's retirement is that of all before it. */
export const retireScheduleOf = (databaseId: string): string => `retire_old_instance:${databaseId}`;

/** A day after an upgrade the frozen old instance goes, and with it its schedule. */
export const retireOldInstanceWorkflow = defineWorkflow({
  kind: 'retire_old_instance',
  // Not strict: schedules of earlier versions say more.
  input: z.object({ upgradeId: z.string() }),
})
  .step('retire', {
    timeoutSeconds: 120,
    run: (step, context) => definitely(context.provider.retireOld(refOf(step), step.input, fencedCall(step))),
    commit: (tx, step, _output, context) => removeSchedule(context.database.sql(tx), retireScheduleOf(step.subject.id)),
  })
  .build();

/** The old instance of an upgrade that has been finished goes in a day, and with it those of earlier ones whose day was not over. */
export async function retireLater(context: WorkContext, tx: Tx, run: WorkflowRun<unknown>, upgradeId: string): Promise<void> {
  const { orgId, mode, subject } = run;
  const [sql, name] = [context.database.sql(tx), retireScheduleOf(subject.id)];
  // An existing schedule would keep its time: this instance would be removed on the day of an earlier one.
  await removeSchedule(sql, name);
  await saveSchedule(sql, {
    name,
    kind: retireOldInstanceWorkflow.kind,
    resourceKey: databaseResourceKey(subject.id),
    subject,
    orgId,
    mode,
    input: { upgradeId },
    // Hourly, should the database be held by other work at that moment; the retirement ends it.
    interval: { intervalSeconds: 3_600 },
    firstRunAt: new Date(context.now().getTime() + context.oldInstanceSeconds * 1_000),
  });
}
