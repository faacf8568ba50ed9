import { orderOf } from '@drydock/workflow/order';
import { removeSchedule } from '@drydock/workflow/schedules';
import { workflowsIn } from '@drydock/workflow/workflow';
import { verifyScheduleOf } from '../backups/verify-restore.head';
import type { Tx } from '../database.store';
import { databaseBackupsPrefix } from '../providers/backup-storage';
import { retireScheduleOf } from '../upgrades/retire-old-instance.head';
import { changeStatus } from './database.store';
import { deleteDatabaseHead } from './delete-database.head';
import { refOf, type WorkContext } from './work';

/** From its first step on there is no way back. */
export const deleteDatabaseWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(deleteDatabaseHead)
    .pointOfNoReturn()
    .step('destroy', {
      timeoutSeconds: 120,
      run: (step) => context.provider.destroy(refOf(step), orderOf(step)),
      commit: async (tx, step) => {
        const sql = context.database.sql(tx);
        await removeSchedule(sql, verifyScheduleOf(step.subject.id));
        await removeSchedule(sql, retireScheduleOf(step.subject.id));
      },
    })
    .step('discard_backups', {
      timeoutSeconds: 600,
      run: (step) => context.backupStorage.removeAll(databaseBackupsPrefix(refOf(step))),
    })
    .onEnd({ succeeded: (tx, run) => changeStatus(tx, run.subject.id, 'deleted') })
    .build();
