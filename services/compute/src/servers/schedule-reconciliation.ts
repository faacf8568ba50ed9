import { saveSchedule } from '@drydock/workflow/store/schedules';
import type { ComputeDatabase } from '../database.store';
import { reconcileServersWorkflow } from './reconcile-servers.workflow';
import { removeOtherSchedules } from './reconciliation-schedule.store';
import type { Targets } from './targets';

/** Nobody's: the work is Drydock's own. */
const platformOrgId = '00000000-0000-0000-0000-000000000000';

const modes = ['live', 'sandbox'] as const;

/** Schedules a reconciliation of every configured range every `seconds`, and removes those of other ranges. */
export async function scheduleReconciliation(
  database: ComputeDatabase,
  targets: Targets<unknown>,
  seconds: number,
): Promise<void> {
  const ranges = modes.flatMap((mode) => [...targets[mode].keys()].map((deployTarget) => ({ mode, deployTarget })));
  const nameOf = ({ mode, deployTarget }: (typeof ranges)[number]): string =>
    `${reconcileServersWorkflow.kind}:${mode}:${deployTarget}`;
  await database.transaction(async (tx) => {
    const sql = database.sql(tx);
    for (const range of ranges) {
      const { mode, deployTarget } = range;
      await saveSchedule(sql, {
        name: nameOf(range),
        kind: reconcileServersWorkflow.kind,
        resourceKey: nameOf(range),
        subject: { type: 'deploy_target', id: deployTarget },
        orgId: platformOrgId,
        mode,
        input: { deployTarget },
        interval: { intervalSeconds: seconds },
      });
    }
    await removeOtherSchedules(sql, ranges.map(nameOf));
  });
}
