import { randomUUID } from 'node:crypto';
import { setTimeout as wait } from 'node:timers/promises';
import { describeLoadFindings } from '@drydock/agent/database';
import type { Major } from '@drydock/contracts/databases/major';
import { timeOfId } from '@drydock/contracts/platform/values';
import { fail, fencedCall, type StepContext } from '@drydock/workflow/definition';
import { z } from 'zod';
import { findBackup, insertBackup, markFailed, recordProof } from '../backups/backup.store';
import type { StoredArchive } from '../backups/backup.types';
import {
  assertRoom,
  completeBackup,
  discardPacked,
  findWritten,
  movingLimits,
  packBackup,
  verifyPacked,
  verifyStored,
} from '../backups/pack-backup';
import { defineWorkflow, refOf, type WorkContext } from '../context/context';
import { sandboxBehaviour } from '../databases/database.rules';
import { changeStatus, findDatabase, showServing } from '../databases/database.store';
import { definitely } from '../providers/database-errors';
import { cutOver, endForgotten, hasSwitched, takeBack } from '../upgrades/cut-over';
import { beginEndOfUpgrade } from '../upgrades/end-abandoned-upgrade.workflow';
import { retireLater } from '../upgrades/retire-old-instance.workflow';
import { refusePoint } from './restore.rules';

const input = z.strictObject({ backupId: z.uuid(), safetyCopyId: z.uuid() });

interface RestorePlan {
  archive: StoredArchive;
  /** The major of the serving instance. The backup is loaded into an instance of the same major. */
  major: Major;
  failsRestore: boolean;
}

/** Checks again that the backup is complete, and that the disk has room for a second instance. */
async function recheck(context: WorkContext, step: StepContext<z.infer<typeof input>, unknown>): Promise<RestorePlan> {
  const { database, slowMs } = context;
  const managed = await findDatabase(database.pool, step, step.subject.id);
  if (managed === null) throw fail('database_not_available', { internal: 'the database is gone' });
  const backup = await findBackup(database.pool, managed.id, step.input.backupId);
  const refusal = refusePoint(backup);
  if (refusal !== null || backup === null || backup.archive === null)
    throw fail(refusal?.code ?? 'backup_not_completed');
  const hosted = await assertRoom(context, step, backup.archive);
  const { failsRestore, isSlow } = sandboxBehaviour(managed);
  if (isSlow) await wait(slowMs, undefined, { signal: step.signal });
  return { archive: backup.archive, major: hosted.major, failsRestore };
}

/**
 * Packs the content that the restore will replace and discards the archive. This proves before the switch that a safety
 * copy can be packed.
 */
async function rehearseCopy({ provider, now }: WorkContext, step: StepContext<unknown, unknown>): Promise<void> {
  const nowhere = { write: async () => undefined };
  const archive = { sink: nowhere, archiveId: randomUUID(), sequence: 1, createdAt: now() };
  await definitely(provider.pack(refOf(step), archive, { ...fencedCall(step), progress: step.progress }));
}

/**
 * Packs the replaced instance, which runs until `finish`. If the instance no longer runs, searches the storage for an
 * archive of it, which an earlier attempt may have packed and whose record was lost. Resolves with null if there is
 * none.
 */
async function packReplaced(
  context: WorkContext,
  step: StepContext<z.infer<typeof input>, unknown>,
): Promise<StoredArchive | null> {
  const hosted = await context.provider.describe(refOf(step), step.signal);
  const isThere = hosted?.upgrade?.upgradeId === step.workflowId && hosted.upgrade.phase === 'switched';
  if (isThere) return packBackup(context, step, step.input.safetyCopyId, { upgradeId: step.workflowId });
  const written = await findWritten(context, step, step.input.safetyCopyId);
  if (written === null)
    step.log.error(
      { alarm: 'safety_copy_failed' },
      'a replaced instance is at rest, and no safety copy of it is found',
    );
  return written;
}

/**
 * Loads a backup into an instance beside the serving one, then switches the address to the new instance. The replaced
 * content is packed as the safety copy only after the switch, because until then customers may still change it. A
 * rehearsal before the switch proves that the content can be packed. The replaced instance is kept, frozen, for a day
 * (`OLD_INSTANCE_HOURS`).
 */
export const restoreDatabaseWorkflow = defineWorkflow({ kind: 'restore_database', input })
  .step('recheck', { weight: 0.2, run: (step, context) => recheck(context, step) })
  .step('verify', {
    ...movingLimits,
    weight: 2,
    run: async (step, context) => {
      const backup = { id: step.input.backupId, databaseId: step.subject.id };
      if (!(await hasSwitched(context, step)))
        await definitely(verifyStored(context, step, backup, step.outputs.recheck.archive));
    },
  })
  .step('rehearse_copy', {
    ...movingLimits,
    weight: 3,
    run: async (step, context) => {
      if (!(await hasSwitched(context, step))) await rehearseCopy(context, step);
    },
  })
  .step('stage', {
    ...movingLimits,
    weight: 8,
    run: async (step, context) => {
      if (await hasSwitched(context, step)) return { tables: 0, findings: [], loadFindings: [], at: null };
      await endForgotten(context, step);
      const { archive: stored, major, failsRestore } = step.outputs.recheck;
      const { storageKey, manifestMac } = stored;
      const archive = { source: context.backupStorage.source(storageKey), archiveId: step.input.backupId, manifestMac };
      const restore = { upgradeId: step.workflowId, major, sourceId: step.subject.id, archive };
      const call = { ...fencedCall(step), progress: step.progress };
      const work = context.provider.stageRestore(refOf(step), restore, call);
      const staged = await definitely(work, 'content_not_loaded');
      if (failsRestore)
        throw fail('database_restore_failed', { internal: 'as the label of the sandbox database asks' });
      const loadFindings = [...(staged?.findings ?? [])];
      return {
        tables: staged?.tables ?? 0,
        findings: describeLoadFindings(loadFindings),
        loadFindings,
        at: context.now().toISOString(),
      };
    },
    commit: async (tx, step, { at, loadFindings }) => {
      // If the database had already switched, this attempt has loaded nothing, so there is no proof to record.
      if (at === null) return;
      const proof = {
        of: 'content' as const,
        major: step.outputs.recheck.major,
        at,
        refused: [],
        findings: loadFindings,
      };
      await recordProof(tx, step.input.backupId, proof);
    },
    undo: (step, context) => takeBack(context, step),
  })
  .pointOfNoReturn()
  .step('cutover', {
    timeoutSeconds: 120,
    run: (step, context) =>
      cutOver(context, step, { upgradeId: step.workflowId }, { takenBack: 'database_restore_failed' }),
    commit: (tx, step) => {
      const { safetyCopyId: id } = step.input;
      const engineVersion = String(step.outputs.recheck.major);
      return insertBackup(tx, {
        id,
        databaseId: step.subject.id,
        kind: 'pre_restore',
        engineVersion,
        createdAt: timeOfId(id),
      });
    },
  })
  .step('pack_safety_copy', {
    ...movingLimits,
    weight: 4,
    run: (step, context) => packReplaced(context, step),
    undo: (step, context) => discardPacked(context, step, step.input.safetyCopyId),
  })
  .step('verify_safety_copy', {
    ...movingLimits,
    weight: 2,
    run: async (step, context) => {
      const packed = step.outputs.pack_safety_copy;
      if (packed !== null) await definitely(verifyPacked(context, step, step.input.safetyCopyId, packed));
      return { at: context.now().toISOString() };
    },
    commit: (tx, step, { at }) => {
      const { safetyCopyId } = step.input;
      const packed = step.outputs.pack_safety_copy;
      if (packed === null) return markFailed(tx, safetyCopyId, 'superseded');
      return completeBackup(tx, step.subject.id, safetyCopyId, packed, new Date(at));
    },
  })
  .step('finish', {
    timeoutSeconds: 1_800,
    run: (step, context) =>
      definitely(context.provider.finish(refOf(step), { upgradeId: step.workflowId }, fencedCall(step))),
    commit: (tx, step, _output, context) => retireLater(context, tx, step, step.workflowId),
  })
  .onEnd({
    parked: (tx, run, context) => showServing(context.database.sql(tx), run.subject.id, run.workflowId),
    succeeded: (tx, run) => changeStatus(tx, run.subject.id, 'available'),
    failed: async (tx, run, { code }, context) => {
      await markFailed(tx, run.input.safetyCopyId, code);
      if (code === 'abandoned') await beginEndOfUpgrade(context.database.sql(tx), run);
      else await changeStatus(tx, run.subject.id, 'available');
    },
  })
  .build();
