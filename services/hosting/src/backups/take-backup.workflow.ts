import { sitePlatformSchema } from '@drydock/contracts/hosting/sites';
import { fail, fencedCall } from '@drydock/workflow/definition';
import { z } from 'zod';
import { defineWorkflow, refOf } from '../context/context';
import { hostOf } from '../providers/site-host';
import { askForRecord } from '../sites/ask-site';
import { assertStillAllowed } from '../sites/definite-failure';
import { noAnswer, type RecordedAnswer } from '../sites/probe.rules';
import { retentionDaysOf } from '../sites/site.rules';
import { findSite } from '../sites/site.store';
import { discardPacked, movingLimits, packOrFind, verifyWritten } from './archive.steps';
import { allowanceOf, allowanceWindowStart, expiryOf, lookAgainAt, refuseBackup } from './backup.rules';
import { listOnDemand, lookAgain, markCompleted, markFailed, markRunning } from './backup.store';

/** Checkpoints of earlier versions lack `answer`. */
interface Plan {
  releaseId: string;
  retentionDays: number;
  answer?: RecordedAnswer;
}

/** Packs files and database of the current release into one verified archive. */
export const takeBackupWorkflow = defineWorkflow({
  kind: 'take_backup',
  input: z.strictObject({ backupId: z.uuid(), platform: sitePlatformSchema }),
})
  .step('recheck', {
    run: async (step, context): Promise<Plan> => {
      const { database, siteHosts, now } = context;
      const { backupId, platform } = step.input;
      const site = await findSite(database.pool, step, step.subject.id);
      if (site === null) throw fail('site_not_ready', { internal: 'the site is gone' });
      const counted = await listOnDemand(database.pool, site.id, allowanceWindowStart(now()));
      const others = counted.filter(({ id }) => id !== backupId);
      // `counted` holds only on-demand backups. A backup that is not among them is a scheduled one, which no allowance
      // limits.
      const allowance = allowanceOf(others.length < counted.length ? others : [], now());
      assertStillAllowed(refuseBackup({ site, unfinished: null }, allowance, now()));
      const hosted = await hostOf(siteHosts, platform).describe(refOf(step), fencedCall(step).signal);
      if (hosted === null) throw fail('site_not_ready', { internal: 'the host does not know the site' });
      const answer = await askForRecord(context, step, platform);
      return { releaseId: hosted.currentRelease, retentionDays: retentionDaysOf(site), answer };
    },
    commit: (tx, step) => markRunning(tx, step.input.backupId),
  })
  .step('pack', {
    ...movingLimits,
    weight: 8,
    run: (step, context) => packOrFind(context, step, { ...step.input, releaseId: step.outputs.recheck.releaseId }),
    undo: (step, context) => discardPacked(context, step, step.input.backupId),
  })
  .step('verify', {
    ...movingLimits,
    weight: 3,
    run: (step, context) => verifyWritten(context, step, step.input.backupId, step.outputs.pack),
    commit: async (tx, step, kept) => {
      const { retentionDays, answer = noAnswer } = step.outputs.recheck;
      const expiresAt = expiryOf(new Date(kept.completedAt), retentionDays);
      await markCompleted(tx, step.input.backupId, step.outputs.pack, { ...kept, expiresAt, answer });
    },
  })
  .onEnd({
    failed: async (tx, run, { code }, context) => {
      await markFailed(tx, run.input.backupId, code);
      await lookAgain(tx, run.input.backupId, lookAgainAt(context.now()));
    },
  })
  .build();
