import type { DeletedSiteFilter } from '@drydock/contracts/hosting/deleted-sites';
import { metadataSchema } from '@drydock/contracts/platform/values';
import { holding } from '@drydock/service/database/list-filter';
import { lockRow } from '@drydock/service/database/prisma-database';
import type { Reader, Tx } from '../database.store';
import { Prisma } from '../generated/prisma/client';
import type { Owner } from '../sites/site.types';
import { forgetVendorPackage } from '../vendor-snapshots/vendor-package.store';
import type { DeletedSite } from './deleted-site.types';

export interface Deletion {
  id: string;
  reason: DeletedSite['reason'];
  deletedAt: Date;
  deletedBy: string | null;
  /** Null: there was nothing to back up. */
  backupId: string | null;
}

/** Deletes the site's row and frees its domain. Its backups stay. */
export async function moveToDeleted(tx: Tx, siteId: string, deletion: Deletion): Promise<void> {
  const {
    orgId,
    mode,
    name,
    primaryDomain,
    domainProvenAt,
    platform,
    database,
    dailyBackups,
    backupRetentionDays,
    backupSequence,
    metadata,
    createdAt,
  } = await tx.site.delete({ where: { id: siteId } });
  const site = {
    siteId,
    siteCreatedAt: createdAt,
    orgId,
    mode,
    name,
    primaryDomain,
    domainProvenAt,
    platform,
    database,
    dailyBackups,
    backupRetentionDays,
    backupSequence,
    metadata: metadataSchema.parse(metadata),
  };
  await forgetVendorPackage(tx, siteId);
  await tx.deletedSite.create({ data: { ...site, ...deletion } });
}

/** The owner's record; null if there is none, or if it is another organisation's or the other mode's. */
export const findDeletedSite = (tx: Reader, { orgId, mode }: Owner, id: string): Promise<DeletedSite | null> =>
  tx.deletedSite.findFirst({ where: { id, orgId, mode } });

/**
 * The same, with the row locked until the transaction ends: the second of two restores waits, and then sees what the
 * first has done.
 */
export async function lockDeletedSite(tx: Tx, owner: Owner, id: string): Promise<DeletedSite | null> {
  return lockRow<DeletedSite>(tx, { name: 'deleted_sites', fields: Prisma.DeletedSiteScalarFieldEnum }, owner, id);
}

/** Newest first, from behind the record `after`. */
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
