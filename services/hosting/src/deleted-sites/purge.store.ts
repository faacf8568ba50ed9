import type { Reader, Tx } from '../database.store';
import { backupFolder } from '../providers/backup-storage';
import type { Owner } from '../sites/site.types';
import type { DeletedSite } from './deleted-site.types';

/** How many records are looked at in one go. */
export const purgePageSize = 500;

/** Records of this mode that were neither brought back nor purged to the end, oldest first, from behind `after`. */
export const listUnpurged = (tx: Reader, mode: Owner['mode'], after: string | null): Promise<DeletedSite[]> =>
  tx.deletedSite.findMany({
    where: { mode, restoredAt: null, dataRemovedAt: null, ...(after === null ? {} : { id: { gt: after } }) },
    orderBy: { id: 'asc' },
    take: purgePageSize,
  });

/**
 * Marks records as purged. From now on they cannot be restored. A record whose site was restored meanwhile is left
 * alone.
 */
export async function markPurged(tx: Tx, ids: readonly string[], purgedAt: Date): Promise<void> {
  await tx.deletedSite.updateMany({
    where: { id: { in: [...ids] }, restoredAt: null, purgedAt: null },
    data: { purgedAt },
  });
}

/** Purged, and their data perhaps still there. */
export const listToRemove = (tx: Reader, mode: Owner['mode'], after: string | null): Promise<DeletedSite[]> =>
  tx.deletedSite.findMany({
    where: {
      mode,
      purgedAt: { not: null },
      dataRemovedAt: null,
      restoredAt: null,
      ...(after === null ? {} : { id: { gt: after } }),
    },
    orderBy: { id: 'asc' },
    take: purgePageSize,
  });

/** The folders of every backup of the site that may still have data in the storage, failed ones included. */
export async function listBackupFolders(tx: Reader, siteId: string): Promise<string[]> {
  const where = { siteId, purgedAt: null };
  const rows = await tx.backup.findMany({
    where,
    select: { storageKey: true, mode: true, orgId: true, siteId: true, id: true },
  });
  return rows.map(backupFolder);
}

export async function recordRemoved(tx: Tx, record: Pick<DeletedSite, 'id' | 'siteId'>, at: Date): Promise<void> {
  await tx.backup.updateMany({ where: { siteId: record.siteId, status: 'completed' }, data: { status: 'expired' } });
  await tx.deletedSite.update({ where: { id: record.id }, data: { dataRemovedAt: at } });
}

/** Null if there is no such record, or if it has been restored or purged. */
export async function setReason(tx: Tx, id: string, reason: DeletedSite['reason']): Promise<DeletedSite | null> {
  const { count } = await tx.deletedSite.updateMany({
    where: { id, restoredAt: null, purgedAt: null },
    data: { reason },
  });
  return count === 0 ? null : tx.deletedSite.findUnique({ where: { id } });
}

export const findRecord = (tx: Reader, id: string): Promise<DeletedSite | null> =>
  tx.deletedSite.findUnique({ where: { id } });
