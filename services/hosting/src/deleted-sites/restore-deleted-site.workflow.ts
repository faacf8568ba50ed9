import type { StepContext } from '@drydock/workflow/definition';
import { orderOf } from '@drydock/workflow/order';
import { workflowsIn } from '@drydock/workflow/workflow';
import { expiryOf } from '../backups/backup.rules';
import { definitely } from '../backups/definite-failure';
import { assertRoom } from '../backups/restore-fetch';
import { assertRebuilt } from '../backups/restore-probe';
import { stageRelease } from '../backups/restore-stage';
import { freezeTtlMs, frozenLimits, movingLimits } from '../backups/step-limits';
import { verifyStored } from '../backups/verify-stored';
import type { Tx } from '../database.store';
import { hostOf } from '../providers/site-host';
import { retentionDaysOf } from '../sites/site.rules';
import { changeStatus, recordUrl } from '../sites/site.store';
import { refOf, type WorkContext } from '../sites/work';
import { setRestoredAt } from './deleted-site.store';
import { findRecord } from './purge.store';
import { type RevivalInput, recheckRevival } from './recheck-revival';
import { restoreDeletedSiteHead } from './restore-deleted-site.head';
import { limitBackup, removeRevivedSite } from './revived-site.store';
import { waitToServe } from './serve-check.store';

/** The step as work on the site that the record becomes: hosts and archives know it by its old id. */
const asSite = <Step extends StepContext<RevivalInput, unknown>>(step: Step): Step => ({
  ...step,
  subject: { type: 'site', id: step.input.siteId },
});

/**
 * Endpoint 6's work. Until the site is let go there is nothing of it to lose: a rebuild that fails removes what it made, and the record can be restored
 * again. From `thaw` on its visitors write to it, and nothing takes it down any more. One whose own code fails, as it may have when it was deleted, is
 * there to be mended: it stays suspended until it serves.
 */
export const restoreDeletedSiteWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(restoreDeletedSiteHead)
    .step('recheck', { weight: 0.2, run: (step) => recheckRevival(context, asSite(step), step.subject.id) })
    .step('verify', {
      ...movingLimits,
      weight: 4,
      run: (step) => verifyStored(context, asSite(step), step.input.backupId, step.outputs.recheck.archive),
    })
    .step('provision', {
      run: async (step) => {
        const site = asSite(step);
        const host = hostOf(context.siteHosts, step.input.platform);
        const { url, currentRelease } = await definitely(host.create(refOf(site), step.input.domain, orderOf(site)));
        return { url, emptyRelease: currentRelease };
      },
      undo: (step) => hostOf(context.siteHosts, step.input.platform).destroy(refOf(asSite(step)), orderOf(asSite(step))),
      commit: (tx, step, { url }) => recordUrl(tx, step.input.siteId, url),
    })
    .step('stage', {
      ...movingLimits,
      weight: 10,
      run: async (step) => {
        const { archive, slowsOnPurpose } = step.outputs.recheck;
        const { platform, backupId: archiveId } = step.input;
        await assertRoom(context, asSite(step), platform, archive.rawBytes);
        const toStage = { source: context.backupStorage.source(archive.storageKey), archiveId, manifestMac: archive.manifestMac };
        return stageRelease(context, asSite(step), { platform, slowsOnPurpose }, toStage);
      },
    })
    .step('switch', {
      ...frozenLimits,
      weight: 0.2,
      run: async (step) => {
        const site = asSite(step);
        const host = hostOf(context.siteHosts, step.input.platform);
        await host.freeze(refOf(site), freezeTtlMs, orderOf(site));
        const move = { from: step.outputs.provision.emptyRelease, to: step.outputs.stage.releaseId };
        await definitely(host.switchRelease(refOf(site), move, orderOf(site)));
      },
    })
    .step('probe', {
      ...frozenLimits,
      weight: 0.2,
      run: (step) => assertRebuilt(context, asSite(step), step.input.platform, step.outputs.recheck.failsOnPurpose),
    })
    .step('thaw', {
      ...frozenLimits,
      weight: 0.2,
      run: (step) => hostOf(context.siteHosts, step.input.platform).thaw(refOf(asSite(step)), orderOf(asSite(step))),
      commit: async (tx, step) => {
        const { siteId } = step.input;
        await (step.outputs.probe.serves ? changeStatus(tx, siteId, 'active') : waitToServe(tx, siteId, context.now()));
        const record = await findRecord(tx, step.subject.id);
        if (record !== null) await limitBackup(tx, step.input.backupId, expiryOf(context.now(), retentionDaysOf(record)));
      },
    })
    .pointOfNoReturn()
    .step('retire', {
      weight: 0.2,
      run: async (step) => {
        const site = asSite(step);
        const { emptyRelease } = step.outputs.provision;
        await definitely(hostOf(context.siteHosts, step.input.platform).retire(refOf(site), emptyRelease, orderOf(site)));
      },
    })
    .onEnd({
      failed: async (tx, run) => {
        if (await removeRevivedSite(tx, run.input.siteId)) await setRestoredAt(tx, run.subject.id, null);
      },
    })
    .build();
