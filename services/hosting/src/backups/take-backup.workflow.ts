import { orderOf } from '@drydock/workflow/order';
import { fail } from '@drydock/workflow/step-error';
import { workflowsIn } from '@drydock/workflow/workflow';
import type { Tx } from '../database.store';
import { hostOf } from '../providers/site-host';
import { retentionDaysOf } from '../sites/site.rules';
import { findSite } from '../sites/site.store';
import { refOf, type WorkContext } from '../sites/work';
import { allowanceOf, allowanceWindowStart, expiryOf, refuseBackup } from './backup.rules';
import { listOnDemand, markCompleted, markFailed, markRunning } from './backup.store';
import { discardPacked, packBackup } from './pack-backup';
import { assertStillAllowed } from './recheck';
import { movingLimits } from './step-limits';
import { takeBackupHead } from './take-backup.head';
import { verifyWritten } from './verify-stored';

/** Files and database of the current release into one verified archive. */
export const takeBackupWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(takeBackupHead)
    .step('recheck', {
      run: async (step) => {
        const { database, siteHosts, now } = context;
        const { backupId, platform } = step.input;
        const site = await findSite(database.pool, step, step.subject.id);
        if (site === null) throw fail('site_not_ready', { internal: 'the site is gone' });
        const counted = await listOnDemand(database.pool, site.id, allowanceWindowStart(now()));
        const others = counted.filter(({ id }) => id !== backupId);
        // What the night takes is nobody's allowance.
        const allowance = allowanceOf(others.length < counted.length ? others : [], now());
        assertStillAllowed(refuseBackup({ site, unfinished: null }, allowance, now()));
        const hosted = await hostOf(siteHosts, platform).describe(refOf(step), orderOf(step).signal);
        if (hosted === null) throw fail('site_not_ready', { internal: 'the host does not know the site' });
        return { releaseId: hosted.currentRelease, retentionDays: retentionDaysOf(site) };
      },
      commit: (tx, step) => markRunning(tx, step.input.backupId),
    })
    .step('pack', {
      ...movingLimits,
      weight: 8,
      run: (step) => packBackup(context, step, { ...step.input, releaseId: step.outputs.recheck.releaseId }),
      undo: (step) => discardPacked(context, step, step.input.backupId),
    })
    .step('verify', {
      ...movingLimits,
      weight: 3,
      run: (step) => verifyWritten(context, step, step.input.backupId, step.outputs.pack),
      commit: async (tx, step, kept) => {
        const expiresAt = expiryOf(new Date(kept.completedAt), step.outputs.recheck.retentionDays);
        await markCompleted(tx, step.input.backupId, step.outputs.pack, { ...kept, expiresAt });
      },
    })
    .onEnd({ failed: (tx, run, { code }) => markFailed(tx, run.input.backupId, code) })
    .build();
