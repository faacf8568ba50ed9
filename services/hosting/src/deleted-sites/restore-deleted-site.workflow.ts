import { restoreContentsSchema } from '@drydock/contracts/hosting/backups';
import { type SiteDatabase, type SitePlatform, sitePlatformSchema } from '@drydock/contracts/hosting/sites';
import { fail, fencedCall, type StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { freezeTtlMs, frozenLimits, movingLimits, verifyStored } from '../backups/archive.steps';
import { expiryOf, type StoredArchive } from '../backups/backup.rules';
import { findBackup } from '../backups/backup.store';
import { assertRebuilt, assertRoom, stageRelease } from '../backups/restore.steps';
import { defineWorkflow, refOf, type WorkContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { hostOf } from '../providers/site-host';
import { definitely } from '../sites/definite-failure';
import { noAnswer, type RecordedAnswer } from '../sites/probe.rules';
import { retentionDaysOf, sandboxBehaviour } from '../sites/site.rules';
import { changeStatus, recordUrl } from '../sites/site.store';
import { reasonNotRestorable } from './deleted-site.rules';
import {
  findDeletedSite,
  findRecord,
  isLetGo,
  limitBackup,
  removeRevivedSite,
  setRestoredAt,
  waitToServe,
} from './deleted-site.store';

/** `siteId` is the former id of the site, with which it comes back. */
const input = z.strictObject({
  siteId: z.uuid(),
  backupId: z.uuid(),
  platform: sitePlatformSchema,
  domain: z.string(),
  contents: restoreContentsSchema.optional(),
});

type RevivalInput = z.infer<typeof input>;

/** The checkpoint of the step `recheck`. */
interface RevivalPlan {
  archive: StoredArchive;
  /** Checkpoints of earlier versions lack it. */
  answer?: RecordedAnswer;
  /** The database in the record. Checkpoints of earlier versions lack it. */
  database?: SiteDatabase | null;
  /** The two flags are true only for a sandbox site whose name asks for a failing or a slow restore. */
  failsOnPurpose: boolean;
  slowsOnPurpose: boolean;
}

/**
 * The step with the site as its subject. The real subject is the record of the deletion, but hosts and archives know
 * the site by its id.
 */
const asSite = <Step extends StepContext<RevivalInput, unknown>>(step: Step): Step => ({
  ...step,
  subject: { type: 'site', id: step.input.siteId },
});

/**
 * Restores a deleted site. If the restore fails before the site was released to its visitors, the host removes the
 * site, and its record can be restored again. A site whose own code fails stays suspended until its owner has repaired
 * it.
 */
export const restoreDeletedSiteWorkflow = defineWorkflow({ kind: 'restore_deleted_site', input })
  .step('recheck', { weight: 0.2, run: (step, context) => recheckRevival(context, asSite(step), step.subject.id) })
  .step('verify', {
    ...movingLimits,
    weight: 4,
    run: (step, context) => verifyStored(context, asSite(step), step.input.backupId, step.outputs.recheck.archive),
  })
  .step('provision', {
    run: async (step, context) => {
      const site = asSite(step);
      const host = hostOf(context.siteHosts, step.input.platform);
      const wanted = { domain: step.input.domain, database: step.outputs.recheck.database };
      const { url, currentRelease } = await definitely(host.create(refOf(site), wanted, fencedCall(site)));
      // If another release than the empty one is live, an earlier run has restored the site, and the record of that run
      // was lost.
      return { url, emptyRelease: host.firstRelease, isLive: currentRelease !== host.firstRelease };
    },
    undo: async (step, context) => {
      if (step.outputs.provision?.isLive === true) return;
      await hostOf(context.siteHosts, step.input.platform).destroy(refOf(asSite(step)), fencedCall(asSite(step)));
    },
    commit: (tx, step, { url }) => recordUrl(tx, step.input.siteId, url),
  })
  .step('stage', {
    ...movingLimits,
    weight: 10,
    run: async (step, context) => {
      const { archive, slowsOnPurpose } = step.outputs.recheck;
      const { emptyRelease: oldRelease } = step.outputs.provision;
      const { platform, backupId: archiveId, contents } = step.input;
      const live = await findLive(context, asSite(step), platform);
      if (live !== null) return { releaseId: live, findings: [], isLive: true };
      await assertRoom(context, asSite(step), platform, archive.rawBytes);
      const toStage = {
        source: context.backupStorage.source(archive.storageKey),
        archiveId,
        manifestMac: archive.manifestMac,
        contents,
      };
      return {
        ...(await stageRelease(context, asSite(step), { platform, slowsOnPurpose, oldRelease }, toStage)),
        isLive: false,
      };
    },
  })
  .step('switch', {
    ...frozenLimits,
    weight: 0.2,
    run: async (step, context) => {
      const site = asSite(step);
      const host = hostOf(context.siteHosts, step.input.platform);
      await host.freeze(refOf(site), freezeTtlMs, fencedCall(site));
      if ((await findLive(context, site, step.input.platform)) !== null) return;
      const move = { from: step.outputs.provision.emptyRelease, to: step.outputs.stage.releaseId };
      await definitely(host.switchRelease(refOf(site), move, fencedCall(site)));
    },
  })
  .step('probe', {
    ...frozenLimits,
    weight: 0.2,
    run: async (step, context) => {
      const { platform } = step.input;
      if ((await findLive(context, asSite(step), platform)) === null)
        throw fail('superseded', { internal: 'the rebuilt release is not served' });
      // If `stage` found a restored release live, an earlier run may have released the site to its visitors. So the
      // site stays even if it answers badly.
      if (step.outputs.stage.isLive) return { serves: true };
      const { failsOnPurpose, answer = noAnswer } = step.outputs.recheck;
      return assertRebuilt(context, asSite(step), platform, { answer, failsOnPurpose });
    },
    commit: (tx, step, { serves }, context) => letGo(tx, step, serves, context.now()),
  })
  .pointOfNoReturn()
  .step('thaw', {
    ...frozenLimits,
    weight: 0.2,
    run: (step, context) =>
      hostOf(context.siteHosts, step.input.platform).thaw(refOf(asSite(step)), fencedCall(asSite(step))),
    commit: async (tx, step, _output, context) => {
      // An earlier version of Drydock may have run `probe`, without releasing the site.
      if (!(await isLetGo(tx, step.input.siteId))) await letGo(tx, step, step.outputs.probe.serves, context.now());
    },
  })
  .step('retire', {
    weight: 0.2,
    run: async (step, context) => {
      const site = asSite(step);
      const { emptyRelease } = step.outputs.provision;
      await definitely(
        hostOf(context.siteHosts, step.input.platform).retire(refOf(site), emptyRelease, fencedCall(site)),
      );
    },
  })
  .onEnd({
    failed: async (tx, run) => {
      if (await removeRevivedSite(tx, run.input.siteId)) await setRestoredAt(tx, run.subject.id, null);
    },
  })
  .build();

/** Releases the site to its owner and its visitors. A site whose page fails stays suspended until it serves. */
async function letGo(tx: Tx, step: StepContext<RevivalInput, unknown>, serves: boolean, now: Date): Promise<void> {
  const { siteId, backupId } = step.input;
  await (serves ? changeStatus(tx, siteId, 'active') : waitToServe(tx, siteId, now));
  const record = await findRecord(tx, step.subject.id);
  if (record !== null) await limitBackup(tx, backupId, expiryOf(now, retentionDaysOf(record)));
}

/**
 * The restored release that the site serves. Null if the site serves its empty first release, or is not on the host.
 */
async function findLive(
  context: WorkContext,
  step: StepContext<RevivalInput, unknown>,
  platform: SitePlatform,
): Promise<string | null> {
  const host = hostOf(context.siteHosts, platform);
  const hosted = await host.describe(refOf(step), step.signal);
  return hosted === null || hosted.currentRelease === host.firstRelease ? null : hosted.currentRelease;
}

/**
 * Applies the rule of the request again, as if it were still the time of the acceptance. Only a missing backup can
 * still refuse the restore: the acceptance has taken the domain, and the request has checked the rights of its caller.
 */
async function recheckRevival(
  { database, backupStorage }: WorkContext,
  step: StepContext<RevivalInput, unknown>,
  deletedSiteId: string,
): Promise<RevivalPlan> {
  const record = await findDeletedSite(database.pool, step, deletedSiteId);
  if (record?.restoredAt == null) throw fail('step_failed', { internal: 'the record is not marked as restored' });
  const backup = await findBackup(database.pool, { ...record, id: record.siteId }, step.input.backupId);
  const archive = backup?.archive ?? null;
  const hasObject = archive !== null && (await backupStorage.has(archive.storageKey));
  const before = { ...record, restoredAt: null };
  const reason = reasonNotRestorable(
    { record: before, hasObject, isDomainHeld: false, isStaff: true },
    record.restoredAt,
  );
  if (reason !== '' || archive === null) {
    const code = reason === '' ? 'no_backup' : reason;
    throw fail(code, { extra: { reason_code: code } });
  }
  const { fails, slows } = sandboxBehaviour(record, 'fail_restore');
  return {
    archive,
    answer: backup?.answer ?? noAnswer,
    database: record.database,
    failsOnPurpose: fails,
    slowsOnPurpose: slows,
  };
}
