import type { StepContext } from '@drydock/workflow/definition';
import { workflowsIn } from '@drydock/workflow/workflow';
import { movingLimits } from '../backups/step-limits';
import type { Tx } from '../database.store';
import { backupFolder } from '../providers/backup-storage';
import type { WorkContext } from '../sites/work';
import { expireBackupsHead } from './expire-backups.head';
import { type Leftover, listLeftovers, markExpired, markPurged } from './expiry.store';

/** Backups: first no request may choose them any more, then their data goes. One that dies in between is completed by the next. */
export const expireBackupsWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(expireBackupsHead)
    .step('expire', {
      run: async () => null,
      commit: async (tx, step) => {
        await markExpired(tx, step.mode, context.now());
      },
    })
    .step('remove', {
      ...movingLimits,
      run: async (step) => {
        const removed: string[] = [];
        for (const backup of await listLeftovers(context.database.pool, step.mode, context.now())) {
          step.signal.throwIfAborted();
          if (await removeBackup(context, step, backup)) removed.push(backup.id);
        }
        return { removed };
      },
      commit: (tx, _step, { removed }) => markPurged(tx, removed, context.now()),
    })
    .build();

/** Whether nothing of it is left. What the storage does not give up yet the next sweep asks for again; it never keeps the others from going. */
async function removeBackup({ backupStorage }: WorkContext, step: StepContext<unknown, unknown>, backup: Leftover): Promise<boolean> {
  try {
    const { lockedObjects } = await backupStorage.removeAll(backupFolder(backup));
    if (lockedObjects > 0) step.log.warn({ backup_id: backup.id, lockedObjects }, 'objects of a backup that is over are still locked');
    return lockedObjects === 0;
  } catch (error) {
    step.log.warn({ err: error, backup_id: backup.id }, 'the data of a backup that is over could not be removed');
    return false;
  }
}
