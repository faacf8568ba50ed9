import { restartAppHead } from './app/restart-app.head';
import { restoreBackupHead } from './backups/restore-backup.head';
import { takeBackupHead } from './backups/take-backup.head';
import { checkServingHead } from './deleted-sites/check-serving.head';
import { purgeDeletedSitesHead } from './deleted-sites/purge-deleted-sites.head';
import { restoreDeletedSiteHead } from './deleted-sites/restore-deleted-site.head';
import { configureOffsiteHead } from './offsite/configure-offsite.head';
import { copyOffsiteHead } from './offsite/copy-offsite.head';
import { restoreOffsiteHead } from './offsite/restore-offsite.head';
import { checkImmutabilityHead } from './proofs/check-immutability.head';
import { restoreDrillHead } from './proofs/restore-drill.head';
import { expireBackupsHead } from './retention/expire-backups.head';
import { sweepBackupsHead } from './retention/sweep-backups.head';
import { createSiteHead } from './sites/create-site.head';
import { deleteSiteHead } from './sites/delete-site.head';
import type { WorkContext } from './sites/work';
import { vendorRestoreHead } from './vendor-snapshots/vendor-restore.head';
import { vendorTakeSnapshotHead } from './vendor-snapshots/vendor-take-snapshot.head';
import { workflows } from './workflows';

it('requests announce the very steps that workers take', () => {
  const heads = [
    createSiteHead,
    deleteSiteHead,
    takeBackupHead,
    restoreBackupHead,
    configureOffsiteHead,
    copyOffsiteHead,
    restoreOffsiteHead,
    restartAppHead,
    vendorRestoreHead,
    vendorTakeSnapshotHead,
    restoreDeletedSiteHead,
    purgeDeletedSitesHead,
    checkServingHead,
    sweepBackupsHead,
    expireBackupsHead,
    checkImmutabilityHead,
    restoreDrillHead,
  ];
  const announced = heads.map(({ kind, steps }) => [kind, steps.map(({ name }) => name)]);
  const taken = workflows(Object.freeze({}) as WorkContext).map(({ kind, steps }) => [kind, steps.map(({ name }) => name)]);
  expect(announced).toEqual(taken);
});
