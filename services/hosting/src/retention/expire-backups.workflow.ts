import type { StepContext } from '@drydock/workflow/definition/definition';
import { z } from 'zod';
import { movingLimits } from '../backups/archive.steps';
import { backupFolder } from '../providers/backup-storage';
import { defineWorkflow, type WorkContext } from '../sites/work';
import { type Leftover, listLeftovers, markExpired, markPurged } from './expiry.store';

/** Backups: first no request may choose them any more, then their data goes. One that dies in between is completed by the next. */
export const expireBackupsWorkflow = defineWorkflow({ kind: 'expire_backups', input: z.strictObject({}) })
  .step('expire', {
    run: async () => null,
    commit: async (tx, step, _output, context) => {
      await markExpired(tx, step.mode, context.now());
    },
  })
  .step('remove', {
    ...movingLimits,
    run: async (step, context) => {
      const removed: string[] = [];
      for (const backup of await listLeftovers(context.database.pool, step.mode, context.now())) {
        step.signal.throwIfAborted();
        if (await removeBackup(context, step, backup)) removed.push(backup.id);
      }
      return { removed };
    },
    commit: (tx, _step, { removed }, context) => markPurged(tx, removed, context.now()),
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
