import type { Reader, Tx } from '../database.store';
import type { Owner } from '../sites/site.types';

/** The vendor's id of the site's package; null for a site that is none. */
export async function findVendorPackageId(tx: Reader, site: Owner & { id: string }): Promise<string | null> {
  const row = await tx.vendorPackage.findFirst({
    where: { siteId: site.id, orgId: site.orgId, mode: site.mode },
    select: { packageId: true },
  });
  return row?.packageId ?? null;
}

/** Records the vendor's package of the site. The same call again changes nothing. */
export async function recordVendorPackage(tx: Tx, site: Owner & { siteId: string }, packageId: string): Promise<void> {
  const { siteId, orgId, mode } = site;
  await tx.vendorPackage.upsert({
    where: { siteId },
    create: { siteId, orgId, mode, packageId },
    update: { packageId },
  });
}

export async function forgetVendorPackage(tx: Tx, siteId: string): Promise<void> {
  await tx.vendorPackage.deleteMany({ where: { siteId } });
}
