import { fencedCall } from '@drydock/workflow/definition';
import { removeSchedule } from '@drydock/workflow/store';
import { z } from 'zod';
import { verifyScheduleOf } from '../backups/verify-restore.workflow';
import { defineWorkflow, refOf } from '../context/context';
import { changeStatus } from '../databases/database.store';
import { databaseBackupsPrefix } from '../providers/backup-storage';
import { retireScheduleOf } from '../upgrades/retire-old-instance.workflow';

/** None of the steps can be undone. */
export const deleteDatabaseWorkflow = defineWorkflow({ kind: 'delete_database', input: z.strictObject({}) })
  .pointOfNoReturn()
  .step('destroy', {
    timeoutSeconds: 120,
    run: (step, context) => context.provider.destroy(refOf(step), fencedCall(step)),
    commit: async (tx, step, _output, context) => {
      const sql = context.database.sql(tx);
      await removeSchedule(sql, verifyScheduleOf(step.subject.id));
      await removeSchedule(sql, retireScheduleOf(step.subject.id));
    },
  })
  .step('discard_backups', {
    timeoutSeconds: 600,
    run: (step, context) => context.backupStorage.removeAll(databaseBackupsPrefix(refOf(step))),
  })
  .onEnd({ succeeded: (tx, run) => changeStatus(tx, run.subject.id, 'deleted') })
  .build();
