import { z } from 'zod';
import { defineWorkflow, refOf } from '../context/context';
import { backupPrefix } from '../providers/backup-storage';

/**
 * Removes the archive of a backup, whose record the request has deleted. The step cannot be undone. The removal of what
 * is removed already is no error, so the step may be repeated.
 */
export const deleteBackupWorkflow = defineWorkflow({
  kind: 'delete_database_backup',
  input: z.strictObject({ backupId: z.uuid() }),
})
  .pointOfNoReturn()
  .step('discard', {
    timeoutSeconds: 600,
    run: (step, context) => context.backupStorage.removeAll(backupPrefix(refOf(step), step.input.backupId)),
  })
  .build();
