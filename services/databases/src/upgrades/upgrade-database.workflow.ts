import { setTimeout as wait } from 'node:timers/promises';
import { type Major, majorOf, majorSchema } from '@drydock/contracts/databases/major';
import type { Finding } from '@drydock/contracts/platform/preflight';
import { fail, fencedCall } from '@drydock/workflow/definition';
import { z } from 'zod';
import { findBackup, insertBackup, markFailed, markRunning } from '../backups/backup.store';
import type { StoredArchive } from '../backups/backup.types';
import {
  assertRoom,
  completeBackup,
  discardPacked,
  findWritten,
  movingLimits,
  packBackup,
  proveRestorable,
  recordLoad,
  verifyPacked,
} from '../backups/pack-backup';
import { defineWorkflow, refOf } from '../context/context';
import { sandboxBehaviour } from '../databases/database.rules';
import { changeStatus, findDatabase, recordVersion, showServing } from '../databases/database.store';
import { definitely } from '../providers/database-errors';
import type { Comparison, Upgrade, UpgradePath } from '../providers/database-provider';
import { cutOver, endForgotten, hasSwitched, takeBack } from './cut-over';
import { beginEndOfUpgrade } from './end-abandoned-upgrade.workflow';
import { retireLater } from './retire-old-instance.workflow';

/** The most findings that are listed one by one, and the most names in one finding. */
const toldMax = 50;

/** The findings of a comparison whose outcome is `equal` or `undecided`, for the owner and staff. */
function findingsOfComparison({ outcome, names, differed, recomputed }: Omit<Comparison, 'tables'>): Finding[] {
  const findings: Finding[] =
    outcome === 'undecided' ? [{ level: 'WARNING', code: 'not_compared', detail: undecided(names, differed) }] : [];
  for (const { object, statements, isEmpty } of recomputed.slice(0, toldMax)) {
    const [code, detail] = isEmpty
      ? ['not_populated', unfilled(object, statements)]
      : ['recomputed', changed(object, statements)];
    findings.push({ level: 'WARNING', code, detail });
  }
  const more = recomputed.length - toldMax;
  if (more > 0)
    findings.push({
      level: 'WARNING',
      code: 'more_findings',
      detail: `${more} more computed objects hold other values.`,
    });
  return findings;
}

function undecided(names: readonly string[], differed: readonly string[]): string {
  const what = names.length > 0 ? `Written since the switch: ${told(names)}.` : 'Nothing of it was compared.';
  const earlier = differed.length > 0 ? ` An earlier comparison found a difference in: ${told(differed)}.` : '';
  return (
    'Whether the new instance held the same as the old one at the switch is not known: ' +
    `the moment to compare with was lost with a restart, or a table was altered since. ${what}${earlier}`
  );
}

function changed(object: string, statements: readonly string[]): string {
  const rebuild =
    statements.length > 0
      ? `What is made of it was computed at the upgrade; to compute it once more: ${statements.join(' ')}`
      : 'No index and no materialized view is made of it.';
  return `${object} holds other values than before: the new version has computed it from the same rows. ${rebuild}`;
}

const unfilled = (object: string, statements: readonly string[]): string =>
  `${object} is there without its contents: its query failed over the rows at the upgrade. ` +
  `Mend what it needs, then run: ${statements.join(' ')}`;

const told = (names: readonly string[]): string =>
  names.length > toldMax
    ? `${names.slice(0, toldMax).join(', ')} and ${names.length - toldMax} more`
    : names.join(', ');

interface Moving {
  workflowId: string;
  input: { toMajor: Major };
  outputs: { precheck: { path: UpgradePath } };
}
const upgradeOf = ({ workflowId, input, outputs }: Moving): Upgrade => ({
  upgradeId: workflowId,
  toMajor: input.toMajor,
  path: outputs.precheck.path,
});

/**
 * Moves the database to a newer major behind the same address. It first proves a backup, then fills a new instance
 * beside the old one and switches. The old instance is kept for a day (`OLD_INSTANCE_HOURS`).
 */
export const upgradeDatabaseWorkflow = defineWorkflow({
  kind: 'upgrade_database',
  input: z.strictObject({ toMajor: majorSchema, fromVersion: z.string(), backupId: z.uuid(), newBackupId: z.uuid() }),
})
  .step('precheck', {
    run: async (step, context) => {
      const { provider, database, slowMs } = context;
      const managed = await findDatabase(database.pool, step, step.subject.id);
      if (managed === null) throw fail('database_not_available', { internal: 'the database is gone' });
      // After the switch the stages that depend on the path do nothing, so any path will do.
      if (await hasSwitched(context, step)) return { path: 'offline' as const, failsUpgrade: false };
      const { path, findings } = await definitely(provider.planUpgrade(refOf(step), step.input.toMajor, step.signal));
      if (findings.some(({ level }) => level === 'ERROR'))
        throw fail('upgrade_precheck_failed', { extra: { findings } });
      const { failsUpgrade, isSlow } = sandboxBehaviour(managed);
      if (isSlow) await wait(slowMs, undefined, { signal: step.signal });
      return { path, failsUpgrade };
    },
    commit: (tx, step) => markRunning(tx, step.input.backupId),
  })
  .step('back_up', {
    ...movingLimits,
    weight: 4,
    // After a switch the serving instance has the new version and cannot be packed as the old one. A backup of the old
    // version then exists only if an earlier run of this step has written it.
    run: async (step, context): Promise<StoredArchive | null> =>
      (await hasSwitched(context, step))
        ? findWritten(context, step, step.input.backupId)
        : packBackup(context, step, step.input.backupId),
    // A completed backup is kept, because it can be restored whether or not the upgrade succeeds.
    undo: async (step, context) => {
      const backup = await findBackup(context.database.pool, step.subject.id, step.input.backupId);
      if (backup?.status !== 'completed') await discardPacked(context, step, step.input.backupId);
    },
  })
  .step('prove_backup', {
    ...movingLimits,
    weight: 4,
    run: async (step, context) => {
      const { input, outputs } = step;
      const archive = outputs.back_up;
      const at = context.now().toISOString();
      if (archive === null) return { isProven: false, loadFindings: [], at };
      await definitely(verifyPacked(context, step, input.backupId, archive));
      const proof = { backupId: input.backupId, major: majorOf(input.fromVersion), archive };
      await assertRoom(context, step, archive);
      return { ...(await proveRestorable(context, step, proof)), at };
    },
    commit: async (tx, step, { at, ...proof }) => {
      const { backupId, fromVersion } = step.input;
      const archive = step.outputs.back_up;
      if (archive === null) return markFailed(tx, backupId, 'superseded');
      await completeBackup(tx, step.subject.id, backupId, archive, new Date(at));
      await recordLoad(tx, step.subject.id, backupId, { at, major: majorOf(fromVersion), ...proof });
    },
  })
  .step('create_target', {
    timeoutSeconds: 120,
    run: async (step, context) => {
      if (await hasSwitched(context, step)) return;
      await endForgotten(context, step);
      // The precheck knows only the size on disk. If the values are compressed there, the copy may need more room.
      const archive = step.outputs.back_up;
      if (archive !== null) await assertRoom(context, step, archive);
      await definitely(context.provider.createTarget(refOf(step), upgradeOf(step), fencedCall(step)));
    },
    // `takeBack` also undoes the later steps before the cutover, so they have no undo of their own.
    undo: (step, context) => takeBack(context, step),
  })
  .step('copy_schema', {
    timeoutSeconds: 1_800,
    run: (step, context) =>
      definitely(
        context.provider.copySchema(refOf(step), upgradeOf(step), { ...fencedCall(step), progress: step.progress }),
      ),
  })
  .step('copy_data', {
    ...movingLimits,
    weight: 8,
    run: (step, context) =>
      definitely(
        context.provider.copyData(refOf(step), upgradeOf(step), { ...fencedCall(step), progress: step.progress }),
      ),
  })
  .step('catch_up', {
    timeoutSeconds: 3_600,
    run: async (step, context) => {
      await definitely(
        context.provider.catchUp(refOf(step), upgradeOf(step), { ...fencedCall(step), progress: step.progress }),
      );
      if (step.outputs.precheck.failsUpgrade)
        throw fail('upgrade_failed', { internal: 'as the label of the sandbox database asks' });
    },
  })
  .pointOfNoReturn()
  .step('cutover', {
    timeoutSeconds: 120,
    run: (step, context) => {
      const catchUp = (): Promise<void> =>
        context.provider.catchUp(refOf(step), upgradeOf(step), { ...fencedCall(step), progress: step.progress });
      return cutOver(context, step, upgradeOf(step), { prepare: catchUp, takenBack: 'upgrade_failed' });
    },
    commit: async (tx, step, _output, context) => {
      const { toMajor, newBackupId } = step.input;
      await recordVersion(tx, step.subject.id, String(toMajor));
      await insertBackup(tx, {
        id: newBackupId,
        databaseId: step.subject.id,
        kind: 'upgrade',
        engineVersion: String(toMajor),
        createdAt: context.now(),
      });
    },
  })
  .step('compare', {
    ...movingLimits,
    weight: 4,
    run: async (step, context) => {
      const call = { ...fencedCall(step), progress: step.progress };
      const compared = await definitely(context.provider.compare(refOf(step), upgradeOf(step), call));
      const { outcome, tables, names, differed } = compared;
      if (outcome === 'different') throw fail('upgrade_content_differs', { internal: names.join(', ') });
      const findings = findingsOfComparison(compared);
      if (outcome === 'undecided') {
        step.log.warn({ names, differed }, 'what was written since the cutover could not be compared');
        // A difference that an earlier comparison found still counts, even if the snapshot to compare with was lost
        // later.
        if (differed.length > 0)
          throw fail('upgrade_content_differs', { internal: differed.join(', '), extra: { findings } });
      }
      return { outcome, tables, findings };
    },
  })
  .step('finish', {
    timeoutSeconds: 1_800,
    run: async (step, context) => {
      await definitely(context.provider.finish(refOf(step), upgradeOf(step), fencedCall(step)));
      const hosted = await context.provider.describe(refOf(step), step.signal);
      return { major: hosted?.major ?? step.input.toMajor };
    },
    commit: async (tx, step, { major }, context) => {
      // The version is read from the agent, because the database may have been upgraded again without a record of it.
      await recordVersion(tx, step.subject.id, String(major));
      await retireLater(context, tx, step, step.workflowId);
    },
  })
  .step('back_up_new', {
    ...movingLimits,
    weight: 4,
    run: async (step, context) => {
      await context.database.transaction((tx) => markRunning(tx, step.input.newBackupId));
      return packBackup(context, step, step.input.newBackupId);
    },
  })
  .step('verify_new', {
    ...movingLimits,
    weight: 2,
    run: async (step, context) => {
      await definitely(verifyPacked(context, step, step.input.newBackupId, step.outputs.back_up_new));
      return { at: context.now().toISOString() };
    },
    commit: (tx, step, { at }) =>
      completeBackup(tx, step.subject.id, step.input.newBackupId, step.outputs.back_up_new, new Date(at)),
  })
  .onEnd({
    parked: (tx, run, context) => showServing(context.database.sql(tx), run.subject.id, run.workflowId),
    succeeded: (tx, run) => changeStatus(tx, run.subject.id, 'available'),
    failed: async (tx, run, { code }, context) => {
      for (const backupId of [run.input.backupId, run.input.newBackupId]) await markFailed(tx, backupId, code);
      if (code === 'abandoned') await beginEndOfUpgrade(context.database.sql(tx), run);
      else await changeStatus(tx, run.subject.id, 'available');
    },
  })
  .build();
