import { workflowsIn } from '@drydock/workflow/workflow';
import type { Tx } from '../database.store';
import { recordVerified } from '../databases/database.store';
import { refOf, type WorkContext } from '../databases/work';
import { findNewestBackup } from './backup.store';
import { movingLimits, proveRestorable } from './pack-backup';
import { verifyRestoreHead } from './verify-restore.head';

/** Restores the newest backup beside the database and reads a row back over a client connection. Without a backup, or without a row in it, it proves nothing. */
export const verifyRestoreWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(verifyRestoreHead)
    .step('restore', {
      ...movingLimits,
      run: async (step) => {
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
