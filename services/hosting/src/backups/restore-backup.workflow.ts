import { workflowsIn } from '@drydock/workflow/workflow';
import type { Tx } from '../database.store';
import { hostOf } from '../providers/site-host';
import { changeStatus } from '../sites/site.store';
import { orderOf, refOf, type WorkContext } from '../sites/work';
import { expiryOf } from './backup.rules';
import { insertBackup, markCompleted, markFailed } from './backup.store';
import { definitely } from './definite-failure';
import { packBackup } from './pack-backup';
import { restoreBackupHead } from './restore-backup.head';
import { assertFetchable } from './restore-fetch';
import { assertServes } from './restore-probe';
import { recheckRestore } from './restore-recheck';
import { discardStaged, stageRelease } from './restore-stage';
import { freezeTtlMs, frozenLimits, movingLimits } from './step-limits';
import { verifyStored, verifyWritten } from './verify-stored';

/**
 * Endpoint 3's work. Until `thaw` has succeeded everything can be taken back, and is: the site is then as it was. After it the site is the
 * backup's, and what remains is to keep the replaced state as a safety copy before it is removed.
 */
export const restoreBackupWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(restoreBackupHead)
    .step('recheck', { weight: 0.2, do: (step) => recheckRestore(context, step) })
    .step('fetch', { weight: 0.2, do: (step) => assertFetchable(context, step, step.input, step.outputs.recheck) })
    .step('verify', {
      ...movingLimits,
      weight: 4,
      do: (step) => verifyStored(context, step, step.input.backupId, step.outputs.recheck.archive),
    })
    .step('stage', {
      ...movingLimits,
      weight: 10,
      do: (step) => stageRelease(context, step, step.input, step.outputs.recheck),
      undo: (step) => discardStaged(context, step, step.input.platform),
    })
    .step('freeze', {
      ...frozenLimits,
      weight: 0.2,
      do: (step) => hostOf(context.siteHosts, step.input.platform).freeze(refOf(step), freezeTtlMs, orderOf(step)),
      undo: (step) => hostOf(context.siteHosts, step.input.platform).thaw(refOf(step), orderOf(step)),
    })
    .step('switch', {
      ...frozenLimits,
      weight: 0.2,
      do: async (step) => {
        const move = { from: step.outputs.recheck.oldRelease, to: step.outputs.stage.releaseId };
        await definitely(hostOf(context.siteHosts, step.input.platform).switchRelease(refOf(step), move, orderOf(step)));
      },
      undo: async (step) => {
        const move = { from: step.outputs.stage.releaseId, to: step.outputs.recheck.oldRelease };
        await definitely(hostOf(context.siteHosts, step.input.platform).switchRelease(refOf(step), move, orderOf(step)));
      },
    })
    .step('probe', {
      ...frozenLimits,
      weight: 0.2,
      do: (step) => assertServes(context, step, step.input.platform, step.outputs.recheck.failsOnPurpose),
    })
    .step('thaw', {
      ...frozenLimits,
      weight: 0.2,
      do: (step) => hostOf(context.siteHosts, step.input.platform).thaw(refOf(step), orderOf(step)),
      commit: async (tx, step) => {
        const { workflowId, input, subject } = step;
        await insertBackup(tx, step, {
          id: input.safetyCopyId,
          siteId: subject.id,
          kind: 'pre_restore',
          workflowId,
          createdAt: context.now(),
        });
      },
    })
    .pointOfNoReturn()
    .step('pack_safety_copy', {
      ...movingLimits,
      weight: 6,
      do: (step) => {
        const { safetyCopyId: backupId, platform } = step.input;
        return packBackup(context, step, { backupId, platform, releaseId: step.outputs.recheck.oldRelease });
      },
    })
    .step('verify_safety_copy', {
      ...movingLimits,
      weight: 3,
      do: async (step) => {
        await verifyWritten(context, step, step.input.safetyCopyId, step.outputs.pack_safety_copy);
        return { completedAt: context.now().toISOString() };
      },
      commit: async (tx, step, { completedAt: at }) => {
        const completedAt = new Date(at);
        const expiresAt = expiryOf(completedAt, step.outputs.recheck.retentionDays);
        await markCompleted(tx, step.input.safetyCopyId, step.outputs.pack_safety_copy, { completedAt, expiresAt });
      },
    })
    .step('retire', {
      weight: 0.2,
      do: (step) =>
        definitely(hostOf(context.siteHosts, step.input.platform).retire(refOf(step), step.outputs.recheck.oldRelease, orderOf(step))),
    })
    .settle({
      succeeded: (tx, run) => changeStatus(tx, run.subject.id, run.input.statusBefore),
      failed: async (tx, run, { code }) => {
        await changeStatus(tx, run.subject.id, run.input.statusBefore);
        await markFailed(tx, run.input.safetyCopyId, code);
      },
    })
    .build();
