import type { StepContext } from '@drydock/workflow/definition';
import { fail } from '@drydock/workflow/step-error';
import type { z } from 'zod';
import { hostOf } from '../providers/site-host';
import { sandboxBehaviour } from '../sites/sandbox.rules';
import { retentionDaysOf } from '../sites/site.rules';
import { findSite } from '../sites/site.store';
import { refOf, type WorkContext } from '../sites/work';
import { refuseRestore } from './backup.rules';
import { findBackup } from './backup.store';
import type { StoredArchive } from './backup.types';
import { assertStillAllowed } from './recheck';
import type { restoreBackupHead } from './restore-backup.head';

export type RestoreInput = z.infer<typeof restoreBackupHead.input>;

/** What the later steps go by. */
export interface RestorePlan {
  archive: StoredArchive;
  /** Served until the switch; the safety copy is made of it. */
  oldRelease: string;
  retentionDays: number;
  /** The sandbox's own error paths. */
  failsOnPurpose: boolean;
  slowsOnPurpose: boolean;
}

/** Asks the request's rule again, as the site was before this workflow took it. */
export async function recheckRestore(context: WorkContext, step: StepContext<RestoreInput, unknown>): Promise<RestorePlan> {
  const { database, siteHosts, now } = context;
  const { backupId, platform, statusBefore } = step.input;
  const site = await findSite(database.pool, step, step.subject.id);
  if (site === null) throw fail('site_not_ready', { internal: 'the site is gone' });
  const backup = await findBackup(database.pool, site, backupId);
  // Its time may end while the work waits for a worker: what was accepted is done, and expiry leaves it alone as long.
  const point = backup === null ? null : { ...backup, expiresAt: null };
  assertStillAllowed(refuseRestore({ site: { ...site, status: statusBefore }, unfinished: null }, point, now()));
  if (backup?.archive == null) throw fail('backup_not_completed', { internal: 'completed without an archive' });
  const hosted = await hostOf(siteHosts, platform).describe(refOf(step), step.signal);
  if (hosted === null) throw fail('site_not_ready', { internal: 'the host does not know the site' });
  const { fails, slows } = sandboxBehaviour(site, 'fail_restore');
  return {
    archive: backup.archive,
    oldRelease: hosted.currentRelease,
    retentionDays: retentionDaysOf(site),
    failsOnPurpose: fails,
    slowsOnPurpose: slows,
  };
}
