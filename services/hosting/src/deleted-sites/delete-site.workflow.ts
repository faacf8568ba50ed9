import { sitePlatformSchema, siteStatusSchema } from '@drydock/contracts/hosting/sites';
import { fail, fencedCall } from '@drydock/workflow/definition';
import { z } from 'zod';
import { discardPacked, findWritten, movingLimits, packOrFind, verifyWritten } from '../backups/archive.steps';
import {
  findLeftBackup,
  findNewestBackup,
  insertBackup,
  keepBackup,
  markCompleted,
  markFailed,
} from '../backups/backup.store';
import { defineWorkflow, refOf } from '../context/context';
import { hostOf } from '../providers/site-host';
import { askForRecord } from '../sites/ask-site';
import { noAnswer, type RecordedAnswer } from '../sites/probe.rules';
import { unsupportedReasonOf } from '../sites/site.rules';
import { changeStatus } from '../sites/site.store';
import { moveToDeleted } from './deleted-site.store';

interface Inspected {
  /** The release to pack as the last backup. Null if no release is to be packed. */
  releaseId: string | null;
  /**
   * True if an earlier run of this workflow has packed the site and destroyed it, and the record of that run was lost,
   * because Drydock's database was put back from a backup. Otherwise absent.
   */
  isDestroyed?: boolean;
  /** The existing backup to keep if no last backup is taken; null if there is none. Absent in older checkpoints. */
  keptBackupId?: string | null;
  /** Checkpoints of earlier versions lack it. */
  answer?: RecordedAnswer;
}

const takesLast = ({ releaseId, isDestroyed = false }: Inspected): boolean => releaseId !== null || isDestroyed;

/**
 * Takes and verifies a last backup, then destroys the site. No last backup is taken if the host has lost the site, if
 * the site's owner wants none, or if an abandoned deletion has taken one. In these cases an existing backup is kept, if
 * there is one. Sites on a platform without backups are destroyed without a backup.
 */
export const deleteSiteWorkflow = defineWorkflow({
  kind: 'delete_site',
  input: z.strictObject({
    backupId: z.uuid(),
    platform: sitePlatformSchema,
    statusBefore: siteStatusSchema,
    deletedSiteId: z.uuid(),
    deletedBy: z.string(),
    /** False if the customer wants no last backup. Absent in requests that earlier versions accepted. */
    takesBackup: z.boolean().default(true),
  }),
})
  .step('inspect', {
    run: async (step, context): Promise<Inspected> => {
      // On a platform without backups a deleted site cannot be restored.
      if (unsupportedReasonOf(step.input.platform) !== '') return { releaseId: null, keptBackupId: null };
      const left = await findLeftBackup(context.database.pool, step.subject.id);
      // An abandoned deletion may have removed parts of the site, so the site is not packed again. The last whole state
      // is in the backup of that deletion.
      if (left !== null) return { releaseId: null, keptBackupId: left };
      const newest = () => findNewestBackup(context.database.pool, step.subject.id, context.now());
      // A customer must be able to delete a site whose content cannot be packed, so `takesBackup` may be false.
      if (!step.input.takesBackup) return { releaseId: null, keptBackupId: await newest() };
      const hosted = await hostOf(context.siteHosts, step.input.platform).describe(refOf(step), step.signal);
      if (hosted !== null) {
        const answer = await askForRecord(context, step, step.input.platform);
        return { releaseId: hosted.currentRelease, keptBackupId: null, answer };
      }
      if ((await findWritten(context, step, step.input.backupId)) !== null)
        return { releaseId: null, isDestroyed: true };
      return { releaseId: null, keptBackupId: await newest() };
    },
    commit: async (tx, step, inspected, context) => {
      const { input, subject, workflowId } = step;
      if (!takesLast(inspected)) return;
      const location = context.backupStorage.locationIn(step.mode);
      const last = {
        id: input.backupId,
        siteId: subject.id,
        kind: 'scheduled',
        workflowId,
        createdAt: context.now(),
      } as const;
      await insertBackup(tx, step, { ...last, location });
    },
  })
  .step('pack', {
    ...movingLimits,
    weight: 8,
    run: async (step, context) => {
      const { inspect } = step.outputs;
      if (!takesLast(inspect)) return null;
      const { releaseId } = inspect;
      const hosted = await hostOf(context.siteHosts, step.input.platform).describe(refOf(step), step.signal);
      if (hosted !== null && releaseId !== null) return packOrFind(context, step, { ...step.input, releaseId });
      // The site is gone if an earlier run has destroyed it and the record of that run was lost. That run has written
      // the last backup before it destroyed the site.
      const written = await findWritten(context, step, step.input.backupId);
      if (written !== null) return { ...written, findings: [] };
      // Nothing is destroyed without the last backup that the customer was promised.
      if (releaseId !== null)
        throw fail('superseded', { internal: 'the site is not on its host, where it was before' });
      return null;
    },
    undo: (step, context) => discardPacked(context, step, step.input.backupId),
  })
  .step('verify', {
    ...movingLimits,
    weight: 3,
    run: async (step, context) => {
      const { pack } = step.outputs;
      return pack === null ? null : verifyWritten(context, step, step.input.backupId, pack);
    },
    commit: async (tx, step, kept) => {
      const { pack, inspect } = step.outputs;
      const { answer = noAnswer } = inspect;
      // The backup has no expiry, because the purge of the deleted site removes it.
      if (pack !== null && kept !== null)
        await markCompleted(tx, step.input.backupId, pack, { ...kept, expiresAt: null, answer });
      else await markFailed(tx, step.input.backupId, 'superseded');
    },
  })
  .pointOfNoReturn()
  .step('destroy', {
    run: (step, context) => hostOf(context.siteHosts, step.input.platform).destroy(refOf(step), fencedCall(step)),
    commit: async (tx, step, _output, context) => {
      const { deletedSiteId, deletedBy, backupId } = step.input;
      const { inspect, pack } = step.outputs;
      const lastBackupId = pack === null ? (inspect.keptBackupId ?? null) : backupId;
      if (lastBackupId !== null) await keepBackup(tx, lastBackupId);
      const deletion = { id: deletedSiteId, deletedBy, deletedAt: context.now(), backupId: lastBackupId };
      await moveToDeleted(tx, step.subject.id, { ...deletion, reason: 'customer' });
    },
  })
  .onEnd({
    failed: async (tx, run, { code }) => {
      await markFailed(tx, run.input.backupId, code);
      // A deletion that staff have abandoned may have removed parts of the site.
      await changeStatus(tx, run.subject.id, code === 'abandoned' ? 'failed' : run.input.statusBefore);
    },
  })
  .build();
