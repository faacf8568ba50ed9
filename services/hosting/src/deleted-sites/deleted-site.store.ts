import type { DeletedSiteFilter } from '@drydock/contracts/hosting/deleted-sites';
import type { SitePlatform } from '@drydock/contracts/hosting/sites';
import { type Mode, metadataSchema, timeOfId } from '@drydock/contracts/platform/values';
import { holding, lockRow } from '@drydock/service/database';
import type { Reader, Tx } from '../context/database.store';
import { Prisma } from '../generated/prisma/client';
import { backupFolder } from '../providers/backup-storage';
import { forgetVendorPackage } from '../sites/site.store';
import type { Owner } from '../sites/site.types';
import type { DeletedSite } from './deleted-site.rules';

export const purgePageSize = 500;

/**
 * Lists the records that come after the record `after`, oldest first. Leaves out records whose site was restored or
 * whose data was removed.
 */
export const listUnpurged = (tx: Reader, mode: Owner['mode'], after: string | null): Promise<DeletedSite[]> =>
  tx.deletedSite.findMany({
    where: { mode, restoredAt: null, dataRemovedAt: null, ...(after === null ? {} : { id: { gt: after } }) },
    orderBy: { id: 'asc' },
    take: purgePageSize,
  });

/**
 * Marks records as purged, so that their sites cannot be restored any more. Leaves out records whose site was restored
 * since they were listed.
 */
export async function markPurged(tx: Tx, ids: readonly string[], purgedAt: Date): Promise<void> {
  await tx.deletedSite.updateMany({
    where: { id: { in: [...ids] }, restoredAt: null, purgedAt: null },
    data: { purgedAt },
  });
}

/** Lists the purged records whose data may still exist. */
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

/** The folders of all backups of the site that may have data in the storage, failed ones too. */
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

/**
 * Sets the reason of the deletion, such as `abuse`. Resolves with null if there is no such record, or if it was
 * restored or purged.
 */
export async function setReason(tx: Tx, id: string, reason: DeletedSite['reason']): Promise<DeletedSite | null> {
  const { count } = await tx.deletedSite.updateMany({
    where: { id, restoredAt: null, purgedAt: null },
    data: { reason },
  });
  return count === 0 ? null : tx.deletedSite.findUnique({ where: { id } });
}

export const findRecord = (tx: Reader, id: string): Promise<DeletedSite | null> =>
  tx.deletedSite.findUnique({ where: { id } });

/** The columns that a site and its record of deletion share, beside `metadata`. */
const commonColumns = [
  'orgId',
  'mode',
  'name',
  'primaryDomain',
  'domainProvenAt',
  'platform',
  'database',
  'dailyBackups',
  'backupRetentionDays',
  'backupSequence',
] as const;
type Common = Pick<DeletedSite, (typeof commonColumns)[number]>;

const commonOf = (row: Common & { metadata: unknown }) => ({
  ...(Object.fromEntries(commonColumns.map((column) => [column, row[column]])) as unknown as Common),
  metadata: metadataSchema.parse(row.metadata),
});

/**
 * Inserts the site again: suspended, with its old id and its domain. False if the id exists, or if another site holds
 * the domain (`isHeld`). Unique indexes decide, because a site may have taken the domain since the rule was applied.
 */
export async function reviveSite(tx: Tx, record: DeletedSite): Promise<boolean> {
  const { siteId: id } = record;
  // A record that an earlier version of Drydock made has no creation time. Then the time in the site's id is used.
  const site = { ...commonOf(record), id, createdAt: record.siteCreatedAt ?? timeOfId(id) };
  const { count } = await tx.site.createMany({ data: [{ ...site, status: 'suspended' }], skipDuplicates: true });
  return count === 1;
}

/**
 * The row of a site that is being rebuilt has these values until the site is released to its owner and its visitors.
 */
const notLetGo = { status: 'suspended', serveCheckAt: null } as const;

/**
 * Whether the site is released to its owner and its visitors, who may then write to the site. A site that waits for
 * `check_serving` is released too.
 */
export const isLetGo = async (tx: Reader, siteId: string): Promise<boolean> =>
  (await tx.site.count({ where: { id: siteId, NOT: notLetGo } })) > 0;

/**
 * Removes the row of the site, which frees its domain and its id. Resolves with true if there is no row afterwards.
 * Resolves with false, and removes nothing, if the site was released to its visitors.
 */
export async function removeRevivedSite(tx: Tx, siteId: string): Promise<boolean> {
  await tx.site.deleteMany({ where: { id: siteId, ...notLetGo } });
  return (await tx.site.count({ where: { id: siteId } })) === 0;
}

/** Gives the last backup of a restored site an expiry, because the site no longer depends on the backup. */
export async function limitBackup(tx: Tx, backupId: string, expiresAt: Date): Promise<void> {
  await tx.backup.updateMany({ where: { id: backupId, expiresAt: null }, data: { expiresAt } });
}

interface Deletion {
  id: string;
  reason: DeletedSite['reason'];
  deletedAt: Date;
  deletedBy: string | null;
  /** Null if there is no backup to restore the site from. */
  backupId: string | null;
}

/** Replaces the row of the site by the record of its deletion, which frees its domain. The backups stay. */
export async function moveToDeleted(tx: Tx, siteId: string, deletion: Deletion): Promise<void> {
  const site = await tx.site.delete({ where: { id: siteId } });
  await forgetVendorPackage(tx, siteId);
  await tx.deletedSite.create({ data: { ...commonOf(site), siteId, siteCreatedAt: site.createdAt, ...deletion } });
}

/** The record with this id. Null if the organisation has no such record in this mode. */
export const findDeletedSite = (tx: Reader, { orgId, mode }: Owner, id: string): Promise<DeletedSite | null> =>
  tx.deletedSite.findFirst({ where: { id, orgId, mode } });

/**
 * Works like {@link findDeletedSite}, and locks the row until the transaction ends. So a second restore of the site
 * waits until the transaction of the first has ended, and then sees its result.
 */
export async function lockDeletedSite(tx: Tx, owner: Owner, id: string): Promise<DeletedSite | null> {
  return lockRow<DeletedSite>(tx, { name: 'deleted_sites', fields: Prisma.DeletedSiteScalarFieldEnum }, owner, id);
}

/** Lists records, newest first. With `after` only those older than the record `after`. */
export const listDeletedSites = (
  tx: Reader,
  { orgId, mode }: Owner,
  page: { after: string | null; take: number },
  { text }: DeletedSiteFilter,
): Promise<DeletedSite[]> => {
  const behind = page.after === null ? {} : { id: { lt: page.after } };
  const where = { orgId, mode, ...behind, ...holding(text, 'name', 'primaryDomain') };
  return tx.deletedSite.findMany({ where, orderBy: { id: 'desc' }, take: page.take });
};

export async function setRestoredAt(tx: Tx, id: string, restoredAt: Date | null): Promise<void> {
  await tx.deletedSite.update({ where: { id }, data: { restoredAt } });
}

const minuteMs = 60_000;
/** The pause before the next check is this share of the time since the site came back. */
const share = 1 / 20;
const pauseMsMax = 60 * minuteMs;

/**
 * The time of the next check of a site that came back at `since`. The pause grows from a minute to an hour.
 */
export function nextServeCheck(now: Date, since: Date): Date {
  const waitedMs = now.getTime() - since.getTime();
  return new Date(now.getTime() + Math.min(pauseMsMax, Math.max(minuteMs, waitedMs * share)));
}

export interface WaitingSite {
  siteId: string;
  orgId: string;
  platform: SitePlatform;
}

/** Leaves the site suspended, and has `check_serving` check it until it serves. */
export async function waitToServe(tx: Tx, siteId: string, now: Date): Promise<void> {
  await tx.site.update({ where: { id: siteId }, data: { serveCheckAt: nextServeCheck(now, now) } });
}

/** The sites whose check is due, earliest due time first. */
export async function listWaiting(tx: Reader, mode: Mode, now: Date, take: number): Promise<WaitingSite[]> {
  const rows = await tx.site.findMany({
    where: { mode, status: 'suspended', serveCheckAt: { lte: now } },
    orderBy: { serveCheckAt: 'asc' },
    take,
    select: { id: true, orgId: true, platform: true },
  });
  return rows.map(({ id: siteId, ...site }) => ({ siteId, ...site }));
}

/**
 * Makes each site in `serving` active, and schedules the next check of the other sites in `asked`. A site whose status
 * has changed since it was listed for the check stays as it is.
 */
export async function admitServing(
  tx: Tx,
  { asked, serving }: { asked: readonly string[]; serving: readonly string[] },
  now: Date,
): Promise<void> {
  const waits = { status: 'suspended', serveCheckAt: { not: null } } as const;
  await tx.site.updateMany({
    where: { id: { in: [...serving] }, ...waits },
    data: { status: 'active', serveCheckAt: null },
  });
  const records = await tx.deletedSite.groupBy({
    by: ['siteId'],
    where: { siteId: { in: [...asked] }, restoredAt: { not: null } },
    _max: { restoredAt: true },
  });
  const cameBackAt = new Map(records.map(({ siteId, _max }) => [siteId, _max.restoredAt]));
  for (const id of asked) {
    const serveCheckAt = nextServeCheck(now, cameBackAt.get(id) ?? now);
    await tx.site.updateMany({ where: { id, ...waits }, data: { serveCheckAt } });
  }
}
