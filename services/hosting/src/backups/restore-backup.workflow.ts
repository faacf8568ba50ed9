import { workflowsIn } from '@drydock/workflow/workflow';
import type { Tx } from '../database.store';
import type { WorkContext } from '../sites/work';
import { restoreBackupHead } from './restore-backup.head';
import { assertFetchable } from './restore-fetch';
import { recheckRestore } from './restore-recheck';
import { discardStaged, stageRelease } from './restore-stage';
import { movingLimits } from './step-limits';
import { settleRestore, switchOver } from './switch-over';
import { verifyStored } from './verify-stored';

/** Endpoint 3's work: the archive is verified whole and staged beside the live release, then {@link switchOver}. */
export const restoreBackupWorkflow = (context: WorkContext) => {
  const staged = workflowsIn<Tx>()(restoreBackupHead)
    .step('recheck', { weight: 0.2, run: (step) => recheckRestore(context, step) })
    .step('fetch', { weight: 0.2, run: (step) => assertFetchable(context, step, step.input, step.outputs.recheck) })
    .step('verify', {
      ...movingLimits,
      weight: 4,
      run: (step) => verifyStored(context, step, step.input.backupId, step.outputs.recheck.archive),
    })
    .step('stage', {
      ...movingLimits,
      weight: 10,
      run: (step) => {
        const { archive } = step.outputs.recheck;
        const { storageKey, manifestMac } = archive;
        const toStage = { source: context.backupStorage.source(storageKey), archiveId: step.input.backupId, manifestMac };
        return stageRelease(context, step, { ...step.outputs.recheck, platform: step.input.platform }, toStage);
      },
      undo: (step) => discardStaged(context, step, step.input.platform),
    });
  return switchOver(context, staged).onEnd(settleRestore).build();
};
