import type { WorkflowDefinition } from '@drydock/workflow/definition';
import { deleteBackupWorkflow } from './backups/delete-backup.workflow';
import { takeBackupWorkflow } from './backups/take-backup.workflow';
import { verifyRestoreWorkflow } from './backups/verify-restore.workflow';
import type { WorkContext } from './context/context';
import type { Tx } from './context/database.store';
import { createDatabaseWorkflow } from './lifecycle/create-database.workflow';
import { createFromBackupWorkflow } from './lifecycle/create-from-backup.workflow';
import { deleteDatabaseWorkflow } from './lifecycle/delete-database.workflow';
import { restoreDatabaseWorkflow } from './restores/restore-database.workflow';
import { tryBackupWorkflow } from './restores/try-backup.workflow';
import { endAbandonedUpgradeWorkflow } from './upgrades/end-abandoned-upgrade.workflow';
import { retireOldInstanceWorkflow } from './upgrades/retire-old-instance.workflow';
import { upgradeDatabaseWorkflow } from './upgrades/upgrade-database.workflow';

export const workflows: readonly WorkflowDefinition<WorkContext, Tx>[] = [
  createDatabaseWorkflow,
  deleteDatabaseWorkflow,
  takeBackupWorkflow,
  deleteBackupWorkflow,
  verifyRestoreWorkflow,
  upgradeDatabaseWorkflow,
  endAbandonedUpgradeWorkflow,
  retireOldInstanceWorkflow,
  restoreDatabaseWorkflow,
  createFromBackupWorkflow,
  tryBackupWorkflow,
];

/** The texts for staff who abandon a workflow. Each tells in which state the database is left, and what comes next. */
export const abandoned = {
  [upgradeDatabaseWorkflow.kind]:
    `The upgrade is brought to its end by a workflow of its own, ${endAbandonedUpgradeWorkflow.kind}, ` +
    "which comes next in the database's list of workflows. " +
    'A database that had not been switched over is provisioning until that has succeeded, ' +
    'and may take no writes. Then it is available with its old version. ' +
    'One that had been is available with the new version, and the old instance is kept for a day.',
  [restoreDatabaseWorkflow.kind]:
    `The restore is brought to its end by a workflow of its own, ${endAbandonedUpgradeWorkflow.kind}, ` +
    "which comes next in the database's list of workflows. " +
    'A database that had not been switched over is provisioning until that has succeeded, ' +
    'then available as it was. One that had been is available as the backup has it, ' +
    'and the replaced instance is kept for a day, also where it did not become a backup.',
  [endAbandonedUpgradeWorkflow.kind]:
    'The database is left as it is, perhaps without taking writes, ' +
    'and its status is failed: it can only be deleted. Had it been retried instead, it would have ' +
    'gone on.',
};
