import type { Tx } from '../database.store';
import { forgetVendorPackage } from '../vendor-snapshots/vendor-package.store';

export interface Deletion {
  id: string;
  reason: 'dunning' | 'customer' | 'staff' | 'abuse';
  deletedAt: Date;
  deletedBy: string | null;
  /** Null: there was nothing to back up. */
  backupId: string | null;
}

/** The site stops being one; its domain is free from then on. Its backups stay. */
export async function moveToDeleted(tx: Tx, siteId: string, deletion: Deletion): Promise<void> {
  const { orgId, mode, name, primaryDomain, platform, dailyBackups, backupRetentionDays, backupSequence } = await tx.site.delete({
    where: { id: siteId },
  });
  const site = { siteId, orgId, mode, name, primaryDomain, platform, dailyBackups, backupRetentionDays, backupSequence };
  await forgetVendorPackage(tx, siteId);
  await tx.deletedSite.create({ data: { ...site, ...deletion } });
}
