import type { WorkflowDefinition } from '@drydock/workflow/definition';
import { restartAppWorkflow } from './app/restart-app.workflow';
import { restoreBackupWorkflow } from './backups/restore-backup.workflow';
import { takeBackupWorkflow } from './backups/take-backup.workflow';
import type { WorkContext } from './context/context';
import type { Tx } from './context/database.store';
import { checkServingWorkflow } from './deleted-sites/check-serving.workflow';
import { deleteSiteWorkflow } from './deleted-sites/delete-site.workflow';
import { purgeDeletedSitesWorkflow } from './deleted-sites/purge-deleted-sites.workflow';
import { restoreDeletedSiteWorkflow } from './deleted-sites/restore-deleted-site.workflow';
import { configureOffsiteWorkflow } from './offsite/configure-offsite.workflow';
import { copyOffsiteWorkflow } from './offsite/copy-offsite.workflow';
import { restoreOffsiteWorkflow } from './offsite/restore-offsite.workflow';
import { checkImmutabilityWorkflow } from './proofs/check-immutability.workflow';
import { restoreDrillWorkflow } from './proofs/restore-drill.workflow';
import { expireBackupsWorkflow } from './retention/expire-backups.workflow';
import { sweepBackupsWorkflow } from './retention/sweep-backups.workflow';
import { createSiteWorkflow } from './sites/create-site.workflow';
import { vendorRestoreWorkflow } from './vendor-snapshots/vendor-restore.workflow';
import { vendorTakeSnapshotWorkflow } from './vendor-snapshots/vendor-take-snapshot.workflow';

/** Every workflow of this service. The crash tests kill a worker in each step of each. */
export const workflows: readonly WorkflowDefinition<WorkContext, Tx>[] = [
  createSiteWorkflow,
  deleteSiteWorkflow,
  takeBackupWorkflow,
  restoreBackupWorkflow,
  configureOffsiteWorkflow,
  copyOffsiteWorkflow,
  restoreOffsiteWorkflow,
  restartAppWorkflow,
  vendorRestoreWorkflow,
  vendorTakeSnapshotWorkflow,
  restoreDeletedSiteWorkflow,
  purgeDeletedSitesWorkflow,
  checkServingWorkflow,
  sweepBackupsWorkflow,
  expireBackupsWorkflow,
  checkImmutabilityWorkflow,
  restoreDrillWorkflow,
];
