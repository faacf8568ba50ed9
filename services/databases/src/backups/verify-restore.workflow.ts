import { majorOf } from '@drydock/contracts/databases/major';
import { z } from 'zod';
import { defineWorkflow, refOf } from '../context/context';
import { findNewestBackup } from './backup.store';
import { assertRoom, movingLimits, proveRestorable, recordLoad } from './pack-backup';

export const verifyScheduleOf = (databaseId: string): string => `verify_restore:${databaseId}`;

/**
 * Proves the newest backup: loads it into a scratch instance and reads a row back over a client connection. Does
 * nothing if there is no backup. If no row could be read back, the database's `restoreVerifiedAt` does not change.
 * Fails with `storage_full` and calls staff if the disk has no room for the scratch instance.
 */
export const verifyRestoreWorkflow = defineWorkflow({ kind: 'verify_database_restore', input: z.strictObject({}) })
  .step('restore', {
    ...movingLimits,
    run: async (step, context) => {
      const backup = await findNewestBackup(context.database.pool, refOf(step).databaseId);
      if (backup === null || backup.archive === null) return null;
      const { id: backupId, archive, engineVersion } = backup;
      const major = majorOf(engineVersion);
      await assertRoom(context, step, archive, { alarm: 'archive_refused' });
      const proof = await proveRestorable(context, step, { backupId, archive, major });
      return { backupId, major, ...proof, at: context.now().toISOString() };
    },
    commit: async (tx, step, loaded) => {
      if (loaded !== null) await recordLoad(tx, step.subject.id, loaded.backupId, loaded);
    },
  })
  .build();
