import type { StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { movingLimits } from '../backups/archive.steps';
import { defineWorkflow, type WorkContext } from '../context/context';
import { backupFolder } from '../providers/backup-storage';
import { forEachAtOnce } from '../providers/for-each-at-once';
import {
  beginning,
  expirePage,
  type Leftover,
  listExpired,
  listFailed,
  markPurged,
  type Place,
} from './retention.store';

/** Several removals run at once, because a distant storage takes a while for each. */
const removalsAtOnce = 4;

/**
 * Marks backups past their retention as expired, so that no request can choose them, and then removes their data. Data
 * that a run does not remove is left to the next run.
 */
export const expireBackupsWorkflow = defineWorkflow({ kind: 'expire_backups', input: z.strictObject({}) })
  .step('expire', {
    ...movingLimits,
    run: async (step, context) => {
      const now = context.now();
      for (let place: Place | null = beginning; place !== null; ) {
        step.signal.throwIfAborted();
        const after: Place = place;
        place = await context.database.transaction((tx) => expirePage(tx, step.mode, now, after));
      }
    },
  })
  .step('remove', {
    ...movingLimits,
    run: async (step, context) => {
      for (const list of [listExpired, listFailed]) {
        for (let place: Place | null = beginning; place !== null; ) {
          const page: Awaited<ReturnType<typeof list>> = await list(
            context.database.pool,
            step.mode,
            context.now(),
            place,
          );
          await removePage(context, step, page.rows);
          place = page.next;
        }
      }
    },
  })
  .build();

/**
 * Removes the data of a page of backups, then records the removals. If the worker dies before it has recorded them, the
 * removals of one page are repeated.
 */
async function removePage(
  context: WorkContext,
  step: StepContext<unknown, unknown>,
  page: readonly Leftover[],
): Promise<void> {
  const removed: string[] = [];
  await forEachAtOnce(removalsAtOnce, page, async (backup) => {
    step.signal.throwIfAborted();
    if (await removeBackup(context, step, backup)) removed.push(backup.id);
  });
  if (removed.length > 0) await context.database.transaction((tx) => markPurged(tx, removed, context.now()));
}

/**
 * Removes the data of a backup. Resolves with whether all data is gone. Data that the storage does not release yet is
 * left to the next run, so that other backups are not held up.
 */
async function removeBackup(
  { backupStorage }: WorkContext,
  step: StepContext<unknown, unknown>,
  backup: Leftover,
): Promise<boolean> {
  try {
    const { lockedObjects } = await backupStorage.removeAll(backupFolder(backup));
    if (lockedObjects > 0)
      step.log.warn({ backup_id: backup.id, lockedObjects }, 'objects of a backup that is over are still locked');
    return lockedObjects === 0;
  } catch (error) {
    step.log.warn({ err: error, backup_id: backup.id }, 'the data of a backup that is over could not be removed');
    return false;
  }
}
