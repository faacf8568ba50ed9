import type { WorkflowRun } from '@drydock/workflow/definition';
import { removeSchedule, saveSchedule } from '@drydock/workflow/schedules';
import type { Tx } from '../database.store';
import { databaseResourceKey } from '../databases/database-names';
import type { WorkContext } from '../databases/work';
import { retireOldInstanceHead, retireScheduleOf } from './retire-old-instance.head';

/** The old instance of an upgrade that has been finished goes in a day, and with it those of earlier ones whose day was not over. */
export async function retireLater(context: WorkContext, tx: Tx, run: WorkflowRun<unknown>, upgradeId: string): Promise<void> {
  const { orgId, mode, subject } = run;
  const [sql, name] = [context.database.sql(tx), retireScheduleOf(subject.id)];
  // One that is there would keep its time, and this instance be removed on the day of an earlier one.
  await removeSchedule(sql, name);
  await saveSchedule(sql, {
    name,
    kind: retireOldInstanceHead.kind,
    resourceKey: databaseResourceKey(subject.id),
    subject,
    orgId,
    mode,
    input: { upgradeId },
    // Hourly, should the database be held by other work at that moment; the retirement ends it.
    rhythm: { intervalSeconds: 3_600 },
    firstRunAt: new Date(context.now().getTime() + context.oldInstanceSeconds * 1_000),
  });
}
