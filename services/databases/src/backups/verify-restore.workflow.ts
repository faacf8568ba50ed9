import { z } from 'zod';
import { recordVerified } from '../databases/database.store';
import { defineWorkflow, refOf } from '../databases/work';
import { findNewestBackup } from './backup.store';
import { movingLimits, proveRestorable } from './pack-backup';

export const verifyScheduleOf = (databaseId: string): string => `verify_restore:${databaseId}`;

/** Restores the newest backup beside the database and reads a row back over a client connection. Without a backup, or without a row in it, it proves nothing. */
export const verifyRestoreWorkflow = defineWorkflow({ kind: 'verify_database_restore', input: z.strictObject({}) })
  .step('restore', {
    ...movingLimits,
    run: async (step, context) => {
      const backup = await findNewestBackup(context.database.pool, refOf(step).databaseId);
      if (backup === null || backup.archive === null) return { provedAt: null };
      const { id: backupId, archive, engineVersion } = backup;
      const isProven = await proveRestorable(context, step, { backupId, archive, major: Number(engineVersion) });
      return { provedAt: isProven ? context.now().toISOString() : null };
    },
    commit: async (tx, step, { provedAt }) => {
      if (provedAt !== null) await recordVerified(tx, step.subject.id, new Date(provedAt));
    },
  })
  .build();
