import { z } from 'zod';
import { defineWorkflow, refOf } from '../context/context';
import { backupPrefix } from '../providers/backup-storage';

/**
 * Removes the archive of a backup. The request has already deleted the backup's record. The step cannot be undone. It
 * may be repeated, because a missing archive is no error.
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
