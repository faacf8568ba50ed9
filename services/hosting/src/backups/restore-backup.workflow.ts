import { ArchiveError } from '@drydock/archive';
import { archiveFailure, fail, type StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { defineWorkflow, refOf, type WorkContext } from '../context/context';
import { hostOf } from '../providers/site-host';
import { assertStillAllowed } from '../sites/definite-failure';
import type { RecordedAnswer } from '../sites/probe.rules';
import { retentionDaysOf, sandboxBehaviour } from '../sites/site.rules';
import { findSite } from '../sites/site.store';
import { movingLimits, verifyStored } from './archive.steps';
import { refuseRestore, type StoredArchive } from './backup.rules';
import { findBackup } from './backup.store';
import { assertRoom, discardStaged, isRestored, replacedBy, stageRelease } from './restore.steps';
import { restoreEnd, switchOver, switchOverInput } from './switch-over.steps';

const input = z.strictObject({ backupId: z.uuid(), ...switchOverInput });

type Step = StepContext<z.infer<typeof input>, unknown>;

/** The checkpoint of the step `recheck`. */
interface RestorePlan {
  archive: StoredArchive;
  /** The release that is live until the switch. The safety copy is packed from it. */
  oldRelease: string;
  retentionDays: number;
  answer: RecordedAnswer;
  /** The two flags are true only for a sandbox site whose name asks for a failing or a slow restore. */
  failsOnPurpose: boolean;
  slowsOnPurpose: boolean;
}

const staged = defineWorkflow({ kind: 'restore_backup', input })
  .step('recheck', { weight: 0.2, run: (step, context) => recheckRestore(context, step) })
  .step('fetch', {
    weight: 0.2,
    run: async (step, context) => {
      const { recheck } = step.outputs;
      if (!(await isRestored(context, step, step.input.platform, recheck.oldRelease)))
        await assertFetchable(context, step, recheck);
    },
  })
  .step('verify', {
    ...movingLimits,
    weight: 4,
    run: async (step, context) => {
      const { archive, oldRelease } = step.outputs.recheck;
      if (!(await isRestored(context, step, step.input.platform, oldRelease)))
        await verifyStored(context, step, step.input.backupId, archive);
    },
  })
  .step('stage', {
    ...movingLimits,
    weight: 10,
    run: (step, context) => {
      const { archive } = step.outputs.recheck;
      const { storageKey, manifestMac } = archive;
      const toStage = {
        source: context.backupStorage.source(storageKey),
        archiveId: step.input.backupId,
        manifestMac,
        contents: step.input.contents,
      };
      return stageRelease(context, step, { ...step.outputs.recheck, platform: step.input.platform }, toStage);
    },
    undo: (step, context) => discardStaged(context, step, step.input.platform),
  });

/**
 * Restores a site from a backup. Verifies the whole archive and unpacks it beside the live release. The steps of {@link
 * switchOver} do the rest.
 */
export const restoreBackupWorkflow = switchOver(staged).onEnd(restoreEnd).build();

/** Applies the rule of the request again, to the status that the site had before the request set it to `restoring`. */
async function recheckRestore(context: WorkContext, step: Step): Promise<RestorePlan> {
  const { database, siteHosts, now } = context;
  const { backupId, platform, statusBefore } = step.input;
  const site = await findSite(database.pool, step, step.subject.id);
  if (site === null) throw fail('site_not_ready', { internal: 'the site is gone' });
  const backup = await findBackup(database.pool, site, backupId);
  // An accepted restore is carried out even if the backup expires before a worker is free. `expire_backups` leaves out
  // sites with an unfinished workflow, so the backup is still there.
  const point = backup === null ? null : { ...backup, expiresAt: null };
  assertStillAllowed(refuseRestore({ site: { ...site, status: statusBefore }, unfinished: null }, point, now()));
  if (backup?.archive == null) throw fail('backup_not_completed', { internal: 'completed without an archive' });
  const hosted = await hostOf(siteHosts, platform).describe(refOf(step), step.signal);
  if (hosted === null) throw fail('site_not_ready', { internal: 'the host does not know the site' });
  const { fails, slows } = sandboxBehaviour(site, 'fail_restore');
  return {
    archive: backup.archive,
    oldRelease: replacedBy(step, hosted),
    retentionDays: retentionDaysOf(site),
    answer: backup.answer,
    failsOnPurpose: fails,
    slowsOnPurpose: slows,
  };
}

/** Fails unless the storage has the archive and the host has room for a second release. */
async function assertFetchable(context: WorkContext, step: Step, { archive }: RestorePlan): Promise<void> {
  const [isStored] = await Promise.all([
    context.backupStorage.has(archive.storageKey),
    assertRoom(context, step, step.input.platform, archive.rawBytes),
  ]);
  if (!isStored)
    throw archiveFailure(
      'missing',
      'site_backup',
      new ArchiveError('missing', `nothing lies at ${archive.storageKey}`),
    );
}
