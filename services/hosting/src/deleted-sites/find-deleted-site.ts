import type { DeletedSiteReason } from '@drydock/contracts/hosting/deleted-sites';
import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import type { WorkflowParent } from '@drydock/workflow/http';
import { findBackup } from '../backups/backup.store';
import type { Backup } from '../backups/backup.types';
import type { HandlerContext } from '../context/context';
import type { Reader, Tx } from '../context/database.store';
import { isHeld, listHeldDomains } from '../domains/domain.store';
import { ownerOf } from '../sites/site.types';
import { needsObject, reasonNotRestorable } from './deleted-site.rules';
import { findDeletedSite, lockDeletedSite } from './deleted-site.store';
import { type DeletedSite, deletedSiteSubject } from './deleted-site.types';

interface AboutDeletedSite {
  caller: Caller;
  params: { deletedSiteId: string };
}

/** The caller's record. Throws the same 404 in every other case. */
export async function readDeletedSite(
  context: HandlerContext,
  { caller, params }: AboutDeletedSite,
): Promise<DeletedSite> {
  return present(await findDeletedSite(context.database.pool, ownerOf(caller), params.deletedSiteId));
}

/** Reads the caller's record as {@link readDeletedSite} does, and locks its row until the transaction ends. */
export async function holdDeletedSite(tx: Tx, { caller, params }: AboutDeletedSite): Promise<DeletedSite> {
  return present(await lockDeletedSite(tx, ownerOf(caller), params.deletedSiteId));
}

export const isStaff = ({ scopes }: Caller): boolean => scopes.includes('platform.staff');

function present(record: DeletedSite | null): DeletedSite {
  if (record === null) throw problem('deleted_site_not_found');
  return record;
}

/** The parent of workflows that restore a deleted site, which are found under its record. */
export const deletedSiteParent = (context: HandlerContext): WorkflowParent<Tx, 'deletedSiteId'> => ({
  context,
  param: 'deletedSiteId',
  subjectOf: deletedSiteSubject,
  assertThere: (caller, deletedSiteId) => readDeletedSite(context, { caller, params: { deletedSiteId } }),
});

/** The reason why `caller` cannot restore the site now, from what `tx` reads; '' if they can. */
export async function judgeDeletedSite(
  tx: Reader,
  record: DeletedSite,
  { caller, hasObject, now }: { caller: Caller; hasObject: boolean; now: Date },
): Promise<DeletedSiteReason> {
  const held = await listHeldDomains(tx, record, [record.primaryDomain]);
  return reasonNotRestorable({ record, hasObject, isDomainHeld: isHeld(held, record), isStaff: isStaff(caller) }, now);
}

interface LastBackup {
  backup: Backup | null;
  /** Whether the storage has just confirmed that the object exists. */
  hasObject: boolean;
}

/** The caller of the request: staff may see and restore records that a customer may not. */
export interface Asking {
  caller: Caller;
  now: Date;
}

/**
 * Asks the storage itself for the record's last backup, if the answer matters. Throws 503 if the storage cannot be
 * asked.
 */
export async function lookForObject(
  { database, backupStorage }: Pick<HandlerContext, 'database' | 'backupStorage'>,
  record: DeletedSite,
  { caller, now }: Asking,
): Promise<LastBackup> {
  if (record.backupId === null || !needsObject({ record, isStaff: isStaff(caller) }, now))
    return { backup: null, hasObject: false };
  const backup = await findBackup(database.pool, { ...record, id: record.siteId }, record.backupId);
  if (backup?.archive == null || backup.status !== 'completed') return { backup, hasObject: false };
  const hasObject = await backupStorage.has(backup.archive.storageKey).catch((error: unknown) => {
    throw problem('dependency_unavailable', {
      extra: { dependency: 'backup-storage' },
      retryAfterSeconds: 5,
      cause: error,
    });
  });
  return { backup, hasObject };
}
