import { describeLoadFindings } from '@drydock/agent/database';
import { fail, fencedCall } from '@drydock/workflow/definition';
import { z } from 'zod';
import { findBackupOf } from '../backups/backup.store';
import { assertRoom, movingLimits, verifyStored } from '../backups/pack-backup';
import { defineWorkflow, refOf } from '../context/context';
import { definitely } from '../providers/database-errors';
import { refusePoint } from '../restores/restore.rules';
import { hasSwitched } from '../upgrades/cut-over';
import { endCreation, newDatabaseSchema, provision, serve } from './create-database.workflow';

/** Makes a new database with the content of a backup. Its address is published only after the content was loaded. */
export const createFromBackupWorkflow = defineWorkflow({
  kind: 'create_database_from_backup',
  input: newDatabaseSchema.extend({ backupId: z.uuid() }),
})
  .step('provision', {
    timeoutSeconds: 120,
    run: (step, context) => provision(context, step),
    undo: (step, context) => context.provider.destroy(refOf(step), fencedCall(step)),
  })
  .step('load', {
    ...movingLimits,
    weight: 8,
    // The backup is loaded into a second instance beside the empty one. The last step removes the empty instance. The
    // switch is a separate step, so that the findings of the load are recorded before the switch.
    run: async (step, context) => {
      const { provider, database, backupStorage } = context;
      const { backupId, major } = step.input;
      // Nothing is loaded again after the switch, because the customer may have written to the database since.
      if (await hasSwitched(context, step)) return { findings: [] };
      const backup = await findBackupOf(database.pool, step, backupId);
      const refusal = refusePoint(backup);
      if (refusal !== null || backup === null || backup.archive === null)
        throw fail(refusal?.code ?? 'backup_not_completed');
      const { storageKey, manifestMac } = backup.archive;
      await assertRoom(context, step, backup.archive);
      await definitely(verifyStored(context, step, backup, backup.archive));
      const [ref, call] = [refOf(step), { ...fencedCall(step), progress: step.progress }];
      const archive = { source: backupStorage.source(storageKey), archiveId: backupId, manifestMac };
      const restore = { upgradeId: step.workflowId, major, sourceId: backup.databaseId, archive };
      const staged = await definitely(provider.stageRestore(ref, restore, call), 'content_not_loaded');
      return { findings: describeLoadFindings(staged?.findings ?? []) };
    },
  })
  .step('switch', {
    timeoutSeconds: 1_800,
    run: async (step, { provider }) => {
      const move = { upgradeId: step.workflowId };
      await definitely(provider.cutover(refOf(step), move, fencedCall(step)));
      await definitely(provider.finish(refOf(step), move, fencedCall(step)));
    },
  })
  .step('retire_empty', {
    timeoutSeconds: 120,
    run: (step, { provider }) =>
      definitely(provider.retireOld(refOf(step), { upgradeId: step.workflowId }, fencedCall(step))),
    commit: (tx, step, _output, context) => serve(context, tx, step, step.outputs.provision),
  })
  .onEnd(endCreation)
  .build();
