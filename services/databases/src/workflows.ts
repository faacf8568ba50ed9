import type { WorkflowDefinition } from '@drydock/workflow/definition/definition';
import { takeBackupWorkflow } from './backups/take-backup.workflow';
import { verifyRestoreWorkflow } from './backups/verify-restore.workflow';
import type { Tx } from './context/database.store';
import type { WorkContext } from './context/work';
import { createDatabaseWorkflow } from './lifecycle/create-database.workflow';
import { createFromBackupWorkflow } from './lifecycle/create-from-backup.workflow';
import { deleteDatabaseWorkflow } from './lifecycle/delete-database.workflow';
import { restoreDatabaseWorkflow } from './restores/restore-database.workflow';
import { tryBackupWorkflow } from './restores/try-backup.workflow';
import { endAbandonedUpgradeWorkflow } from './upgrades/end-abandoned-upgrade.workflow';
import { retireOldInstanceWorkflow } from './upgrades/retire-old-instance.workflow';
import { upgradeDatabaseWorkflow } from './upgrades/upgrade-database.workflow';

/** Every workflow of this service; tests crash each of their steps. */
export const workflows: readonly WorkflowDefinition<WorkContext, Tx>[] = [
  createDatabaseWorkflow,
  deleteDatabaseWorkflow,
  takeBackupWorkflow,
  verifyRestoreWorkflow,
  upgradeDatabaseWorkflow,
  endAbandonedUpgradeWorkflow,
  retireOldInstanceWorkflow,
  restoreDatabaseWorkflow,
  createFromBackupWorkflow,
  tryBackupWorkflow,
];
