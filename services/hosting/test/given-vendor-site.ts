import type { VendorSnapshotSurface } from '@drydock/contracts/hosting/vendor-snapshots';
import type { Caller } from '@drydock/service/access';
import type { ServiceApi } from '@drydock/service/testing/service-api';
import { givenSite } from './hosting-api';
import { type TestVendor, vendorContent } from './vendor';

export interface GivenVendorSite {
  siteId: string;
  /** The handle of a restore point of the website. */
  timestamp: string;
}

/** A site that is a package at the vendor, with a restore point of its whole content. */
export async function givenVendorSite(api: ServiceApi, vendor: TestVendor, caller: Caller): Promise<GivenVendorSite> {
  const { orgId, mode } = caller;
  const siteId = await givenSite(api, caller);
  await api.rows("UPDATE sites SET platform = 'vendor' WHERE id = $1", [siteId]);
  const made = await fetch(`${vendor.url}/reseller/*/addWeb`, {
    method: 'POST',
    headers: { authorization: `Bearer ${vendor.keys[mode]}` },
    body: JSON.stringify({ type: 'linux', domain_name: `${siteId}.example.com` }),
  });
  const { result: packageId } = (await made.json()) as { result: string };
  await vendor.fill(packageId, vendorContent(1));
  await vendor.keepPoints(packageId);
  await api.rows('INSERT INTO vendor_packages (site_id, org_id, mode, package_id) VALUES ($1, $2, $3::mode, $4)', [
    siteId,
    orgId,
    mode,
    packageId,
  ]);
  const surface = (await api.call('GET', `/v1/sites/${siteId}/vendor-snapshots`, { caller }))
    .json as VendorSnapshotSurface;
  return { siteId, timestamp: surface.web?.points[0]?.timestamp ?? '' };
}
