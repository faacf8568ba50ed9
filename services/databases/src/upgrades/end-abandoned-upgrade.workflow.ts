import { orderOf } from '@drydock/workflow/order';
import { fail } from '@drydock/workflow/step-error';
import { workflowsIn } from '@drydock/workflow/workflow';
import type { Tx } from '../database.store';
import { changeStatus, recordVersion } from '../databases/database.store';
import { definitely } from '../databases/definite-failure';
import { refOf, type WorkContext } from '../databases/work';
import { DatabaseProviderError } from '../providers/database-provider';
import { endAbandonedUpgradeHead } from './end-abandoned-upgrade.head';
import { retireLater } from './retire-later';

/**
 * What an upgrade or a restore that staff gave up has left: taken back before its switch, finished behind it. The claim's fence keeps out whoever still works on it, and
 * the host alone says on which side it is.
 */
export const endAbandonedUpgradeWorkflow = (context: WorkContext) =>
  workflowsIn<Tx>()(endAbandonedUpgradeHead)
    .pointOfNoReturn()
    .step('end', {
      timeoutSeconds: 1_800,
      // An instance that was killed comes back within minutes; until then nothing can be taken back.
      attemptsMax: 12,
      run: async (step) => {
        const { provider } = context;
        const [ref, order] = [refOf(step), orderOf(step)];
        const isSwitched = await provider.abandon(ref, step.input, order).then(
          () => false,
          (error: unknown) => {
            if (error instanceof DatabaseProviderError && error.refusal === 'switched') return true;
            throw error;
          },
        );
        if (isSwitched) await definitely(provider.finish(ref, step.input, order));
        const hosted = await provider.describe(ref, step.signal);
        if (hosted === null) throw fail('database_not_available', { internal: 'the host has no such database' });
        return { major: hosted.major, isSwitched };
      },
      commit: async (tx, step, { major, isSwitched }) => {
        await recordVersion(tx, step.subject.id, String(major));
        if (isSwitched) await retireLater(context, tx, step, step.input.upgradeId);
      },
    })
    .onEnd({
      succeeded: (tx, run) => changeStatus(tx, run.subject.id, 'available'),
      failed: (tx, run) =>
        changeStatus(tx, run.subject.id, 'failed', 'An upgrade or a restore was given up and could not be brought to an end. Ask support.'),
    })
    .build();
