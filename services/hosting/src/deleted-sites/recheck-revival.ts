import type { StepContext } from '@drydock/workflow/definition';
import { fail } from '@drydock/workflow/step-error';
import type { z } from 'zod';
import { findBackup } from '../backups/backup.store';
import type { StoredArchive } from '../backups/backup.types';
import { sandboxBehaviour } from '../sites/sandbox.rules';
import type { WorkContext } from '../sites/work';
import { reasonNotRestorable } from './deleted-site.rules';
import { findDeletedSite } from './deleted-site.store';
import type { restoreDeletedSiteHead } from './restore-deleted-site.head';

export type RevivalInput = z.infer<typeof restoreDeletedSiteHead.input>;

/** What the later steps go by. */
export interface RevivalPlan {
  archive: StoredArchive;
  /** The sandbox's own error paths. */
  failsOnPurpose: boolean;
  slowsOnPurpose: boolean;
}

/**
 * Asks the request's rule again, as of its acceptance: the record was taken and the domain reserved by this very workflow, and whether the caller
 * may was decided then. What may have changed is the backup.
 */
export async function recheckRevival(
  { database, backupStorage }: WorkContext,
  step: StepContext<RevivalInput, unknown>,
  deletedSiteId: string,
): Promise<RevivalPlan> {
  const record = await findDeletedSite(database.pool, step, deletedSiteId);
  if (record?.restoredAt == null) throw fail('step_failed', { internal: 'the record is not marked as restored' });
  const backup = await findBackup(database.pool, { ...record, id: record.siteId }, step.input.backupId);
  const archive = backup?.archive ?? null;
  const hasObject = archive !== null && (await backupStorage.has(archive.storageKey));
  const before = { ...record, restoredAt: null };
  const reason = reasonNotRestorable({ record: before, hasObject, isDomainHeld: false, isStaff: true }, record.restoredAt);
  if (reason !== '' || archive === null) {
    const code = reason === '' ? 'no_backup' : reason;
    throw fail(code, { extra: { reason_code: code } });
  }
  const { fails, slows } = sandboxBehaviour(record, 'fail_restore');
  return { archive, failsOnPurpose: fails, slowsOnPurpose: slows };
}
