import { z } from 'zod';
import { movingLimits } from '../backups/archive.steps';
import { noAnswer } from '../sites/probe.rules';
import { defineWorkflow } from '../sites/work';
import { chooseBackup } from './drill-choice.store';
import { compareRestored } from './drill-compare';
import { asUnavailable, clearDrillSite, restoreOnDrillSite } from './drill-site';
import { isDrillDue } from './proof.rules';
import { readProofs, recordProof } from './proof.store';
import type { RestoreDrillReason } from './proof.types';
import { recordSentinels } from './record-sentinels';

/** `not_due`: there was no drill, and nothing is recorded. */
type Reason = Exclude<RestoreDrillReason, ''> | 'not_due';
const failed = (reason: Reason) => ({ reason, found: null });
const found = <T>(value: T) => ({ reason: '' as const, found: value });

/** A weekly drill that takes longer has failed: no customer would wait for such a restore. */
const drillSeconds = 6 * 3_600;

/**
 * Restores a backup onto a site of its own. Each step continues with the result of the one before. The site is the
 * drill's own and is removed at its end, so that no customer's data stays on it.
 */
export const restoreDrillWorkflow = defineWorkflow({
  kind: 'restore_drill',
  /** If the last passed drill is younger than this, nothing is done. A failed one is repeated sooner. */
  input: z.strictObject({ passedAgeMinDays: z.number().min(0) }),
})
  .step('choose', {
    run: async ({ mode, input }, context) => {
      const { database, siteHosts, drillProbe, now } = context;
      const { drill } = await readProofs(database.pool, mode, context.backupStorage.placeIn(mode));
      if (!isDrillDue(drill, input.passedAgeMinDays, now())) return failed('not_due');
      if (siteHosts.local === undefined || drillProbe === null) return failed('no_drill_site');
      const choice = await chooseBackup(database.pool, mode, now());
      return choice === null ? failed('no_recent_backup') : found({ ...choice, startedAt: now().toISOString() });
    },
  })
  .step('record_sentinels', {
    ...movingLimits,
    run: async (step, context) => {
      const { choose } = step.outputs;
      if (choose.found === null) return choose;
      const { backupId, origin, archive } = choose.found;
      const expected = { archiveId: backupId, ...origin, manifestMac: archive.manifestMac };
      const link = { source: context.backupStorage.source(archive.storageKey), expected };
      const sentinels = await recordSentinels(link, context.archiveKey, step.signal).catch(asUnavailable);
      return sentinels === null ? failed('canary_unavailable') : found(sentinels);
    },
  })
  .step('restore', {
    ...movingLimits,
    weight: 10,
    run: async (step, context) => {
      const { choose, record_sentinels: sentinels } = step.outputs;
      if (choose.found === null || sentinels.found === null) return { reason: sentinels.reason };
      return { reason: await restoreOnDrillSite(context, step, choose.found) };
    },
    undo: (step, context) => clearDrillSite(context, step),
  })
  .step('compare', {
    run: async (step, context) => {
      const { choose, record_sentinels: sentinels, restore } = step.outputs;
      if (restore.reason !== '' || choose.found === null || sentinels.found === null) return { reason: restore.reason };
      const tookMs = context.now().getTime() - Date.parse(choose.found.startedAt);
      if (tookMs > drillSeconds * 1_000) return { reason: 'timed_out' as const };
      return { reason: await compareRestored(context, step, sentinels.found, choose.found.answer ?? noAnswer) };
    },
  })
  .step('clear', {
    run: async (step, context) => {
      await clearDrillSite(context, step);
      return { finishedAt: context.now().toISOString() };
    },
    commit: (tx, { outputs, mode, workflowId }, { finishedAt }, context) => {
      const { choose, compare } = outputs;
      if (compare.reason === 'not_due') return Promise.resolve();
      const proof = { kind: 'restore_drill', mode, place: context.backupStorage.placeIn(mode), workflowId } as const;
      const backupId = choose.found?.backupId ?? null;
      return recordProof(tx, { ...proof, reason: compare.reason, backupId, finishedAt: new Date(finishedAt) });
    },
  })
  .onEnd({
    failed: (tx, { mode, workflowId }, _problem, context) => {
      const proof = { kind: 'restore_drill', mode, place: context.backupStorage.placeIn(mode), workflowId } as const;
      return recordProof(tx, { ...proof, reason: 'restore_failed', backupId: null, finishedAt: context.now() });
    },
  })
  .build();
