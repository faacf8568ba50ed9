import type { SitePlatform, SiteStatus } from '@drydock/contracts/sites';
import { timeOfId } from '@drydock/contracts/values';
import type { EndHooks, WorkflowBuilder } from '@drydock/workflow/definition';
import { orderOf } from '@drydock/workflow/order';
import type { Tx } from '../database.store';
import { hostOf } from '../providers/site-host';
import { changeStatus } from '../sites/site.store';
import { refOf, type WorkContext } from '../sites/work';
import { expiryOf } from './backup.rules';
import { insertBackup, markCompleted, markFailed } from './backup.store';
import { definitely } from './definite-failure';
import { assertServes } from './restore-probe';
import { packSafetyCopy, provePackable, retireReplaced } from './safety-copy';
import { freezeTtlMs, frozenLimits, movingLimits } from './step-limits';
import { verifyWritten } from './verify-stored';

export interface SwitchOverInput {
  /** The backup that the replaced state becomes. */
  safetyCopyId: string;
  platform: SitePlatform;
  /** What the site goes back to afterwards. */
  statusBefore: SiteStatus;
}

/** What the steps before must have found out and made. */
interface Staged {
  readonly recheck: { oldRelease: string; retentionDays: number; failsOnPurpose: boolean };
  readonly stage: { releaseId: string };
}

/**
 * The second half of every restore: a staged release becomes the live one, and what it replaced a safety copy. Until `thaw` has succeeded
 * everything can be taken back, and is. After it the site is the restored one, and what remains is to keep the replaced state before it is removed. That it can be
 * kept is proven before anything is frozen.
 */
export function switchOver<Input extends SwitchOverInput, Outputs extends Staged>(
  context: WorkContext,
  staged: WorkflowBuilder<unknown, Tx, Input, Outputs>,
) {
  const live = goLive(context, staged);
  return keepReplaced(context, live);
}

function goLive<Input extends SwitchOverInput, Outputs extends Staged>(
  context: WorkContext,
  staged: WorkflowBuilder<unknown, Tx, Input, Outputs>,
) {
  return staged
    .step('prove_safety_copy', {
      ...movingLimits,
      weight: 5,
      run: (step) => provePackable(context, step, step.outputs.recheck.oldRelease),
    })
    .step('freeze', {
      ...frozenLimits,
      weight: 0.2,
      run: (step) => hostOf(context.siteHosts, step.input.platform).freeze(refOf(step), freezeTtlMs, orderOf(step)),
      undo: (step) => hostOf(context.siteHosts, step.input.platform).thaw(refOf(step), orderOf(step)),
    })
    .step('switch', {
      ...frozenLimits,
      weight: 0.2,
      run: async (step) => {
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
      run: (step) => assertServes(context, step, step.input.platform, step.outputs.recheck.failsOnPurpose),
    })
    .step('thaw', {
      ...frozenLimits,
      weight: 0.2,
      run: (step) => hostOf(context.siteHosts, step.input.platform).thaw(refOf(step), orderOf(step)),
      commit: async (tx, step) => {
        const { workflowId, input, subject } = step;
        const location = context.backupStorage.locationIn(step.mode);
        const { safetyCopyId: id } = input;
        // Backups are listed by their ids: the times that are shown go with them.
        const copy = { id, siteId: subject.id, kind: 'pre_restore', workflowId, createdAt: timeOfId(id) } as const;
        await insertBackup(tx, step, { ...copy, location });
      },
    })
    .pointOfNoReturn();
}

function keepReplaced<Input extends SwitchOverInput, Outputs extends Staged>(
  context: WorkContext,
  live: WorkflowBuilder<unknown, Tx, Input, Outputs>,
) {
  return live
    .step('pack_safety_copy', {
      ...movingLimits,
      weight: 6,
      run: (step) => packSafetyCopy(context, step, step.outputs.recheck.oldRelease),
    })
    .step('verify_safety_copy', {
      ...movingLimits,
      weight: 3,
      run: async (step) => {
        const { pack_safety_copy: packed } = step.outputs;
        return 'refused' in packed ? null : verifyWritten(context, step, step.input.safetyCopyId, packed);
      },
      commit: async (tx, step, kept) => {
        const { pack_safety_copy: packed, recheck } = step.outputs;
        const { safetyCopyId } = step.input;
        if ('refused' in packed || kept === null)
          return markFailed(tx, safetyCopyId, 'refused' in packed ? packed.refused.code : 'step_failed');
        const expiresAt = expiryOf(new Date(kept.completedAt), recheck.retentionDays);
        await markCompleted(tx, safetyCopyId, packed, { ...kept, expiresAt });
      },
    })
    .step('retire', {
      weight: 0.2,
      run: (step) => {
        const { pack_safety_copy: packed, recheck } = step.outputs;
        return retireReplaced(context, step, 'refused' in packed ? recheck.oldRelease : null);
      },
    });
}

/** How every restore ends: the site is what it was before, and a safety copy that came to nothing says why. */
export const settleRestore: Required<EndHooks<unknown, Tx, SwitchOverInput>> = {
  succeeded: (tx, run) => changeStatus(tx, run.subject.id, run.input.statusBefore),
  failed: async (tx, run, { code }) => {
    await changeStatus(tx, run.subject.id, run.input.statusBefore);
    await markFailed(tx, run.input.safetyCopyId, code);
  },
};
