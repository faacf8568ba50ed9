import { z } from 'zod';
import { defineWorkflow } from '../context/context';
import { definitely } from '../providers/database-errors';
import { markFailed, markRunning } from './backup.store';
import { completeBackup, discardPacked, movingLimits, packBackup, verifyPacked } from './pack-backup';

/** Packs the database as of one moment into one verified archive. Clients read and write meanwhile. */
export const takeBackupWorkflow = defineWorkflow({
  kind: 'take_database_backup',
  input: z.strictObject({ backupId: z.uuid() }),
})
  .step('pack', {
    ...movingLimits,
    weight: 8,
    run: async (step, context) => {
      await context.database.transaction((tx) => markRunning(tx, step.input.backupId));
      return packBackup(context, step, step.input.backupId);
    },
    undo: (step, context) => discardPacked(context, step, step.input.backupId),
  })
  .step('verify', {
    ...movingLimits,
    weight: 3,
    run: async (step, context) => {
      await definitely(verifyPacked(context, step, step.input.backupId, step.outputs.pack));
      return { at: context.now().toISOString() };
    },
    commit: (tx, step, { at }) =>
      completeBackup(tx, step.subject.id, step.input.backupId, step.outputs.pack, new Date(at)),
  })
  .onEnd({ failed: (tx, run, { code }) => markFailed(tx, run.input.backupId, code) })
  .build();
