import { workflowsIn } from '@drydock/workflow/workflow';
import type { Tx } from '../database.store';
import { definitely } from '../databases/definite-failure';
import type { WorkContext } from '../databases/work';
import { markFailed, markRunning } from './backup.store';
import { completeBackup, discardPacked, movingLimits, packBackup, verifyPacked } from './pack-backup';
import { takeBackupHead } from './take-backup.head';

/** One moment of the database into one verified archive; reads and writes go on. */
export const takeBackupWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(takeBackupHead)
    .step('pack', {
      ...movingLimits,
      weight: 8,
      run: async (step) => {
        await markRunning(context.database.pool, step.input.backupId);
        return packBackup(context, step, step.input.backupId);
      },
      undo: (step) => discardPacked(context, step, step.input.backupId),
    })
    .step('verify', {
      ...movingLimits,
      weight: 3,
      run: async (step) => {
        await definitely(verifyPacked(context, step, step.input.backupId, step.outputs.pack));
        return { at: context.now().toISOString() };
      },
      commit: (tx, step, { at }) =>
        completeBackup(tx, step.subject.id, step.input.backupId, step.outputs.pack, { at: new Date(at), isProven: false }),
    })
    .onEnd({ failed: (tx, run, { code }) => markFailed(tx, run.input.backupId, code) })
    .build();
