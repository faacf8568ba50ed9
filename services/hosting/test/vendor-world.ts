import type { VendorSnapshotSurface } from '@drydock/contracts/hosting/vendor-snapshots';
import type { Caller } from '@drydock/service/access';
import { auditedOf } from '@drydock/service/testing/audit-log';
import type { ServiceAnswer } from '@drydock/service/testing/call-service';
import type { QueueBackend } from '@drydock/testing/scope';
import { until } from '@drydock/testing/wait';
import { type HostingWorld, makeSite, openWorld } from './hosting-world';
import { openVendor, type TestVendor, vendorContent } from './vendor';

export interface VendorWorld extends HostingWorld {
  vendor: TestVendor;
}

export interface VendorSite {
  siteId: string;
  packageId: string;
}

export async function openVendorWorld(
  backend: QueueBackend,
  caller: Caller,
  more: Record<string, string> = {},
): Promise<VendorWorld> {
  const vendor = await openVendor();
  const world = await openWorld(backend, caller, { ...vendor.environment, ...more });
  return {
    ...world,
    vendor,
    close: async () => {
      await world.api.rows("DELETE FROM sites WHERE platform = 'vendor'");
      await world.close();
      await vendor.close();
    },
  };
}

/** Makes a site of platform vendor with a restore point of its first content, and then gives it other content. */
export async function makeVendorSite(world: VendorWorld, name = 'Shop'): Promise<VendorSite> {
  const siteId = await makeSite(world, name, 'vendor');
  const [row] = await world.api.rows<{ package_id: string }>(
    'SELECT package_id FROM vendor_packages WHERE site_id = $1',
    [siteId],
  );
  const packageId = row?.package_id ?? '';
  await world.vendor.fill(packageId, vendorContent(1));
  await world.vendor.keepPoints(packageId);
  await world.vendor.fill(packageId, vendorContent(2));
  return { siteId, packageId };
}

export const snapshotsPath = (siteId: string): string => `/v1/sites/${siteId}/vendor-snapshots`;

export async function surfaceOf(world: VendorWorld, siteId: string): Promise<VendorSnapshotSurface> {
  const answer = await world.api.call('GET', snapshotsPath(siteId));
  if (answer.status !== 200) throw new Error(answer.text);
  return answer.json as VendorSnapshotSurface;
}

export const restore = (
  world: VendorWorld,
  siteId: string,
  body: object,
  options: object = {},
): Promise<ServiceAnswer> => world.api.call('POST', `${snapshotsPath(siteId)}/restore`, { body, ...options });

/** Polls the surface, as a client would, until nothing is in progress. */
export const atRest = (world: VendorWorld, siteId: string): Promise<VendorSnapshotSurface> =>
  until(
    async () => {
      const surface = await surfaceOf(world, siteId);
      return !surface.in_progress && surface;
    },
    { timeoutMs: 30_000, everyMs: 100, what: 'the end of what is in progress' },
  );

/** The changes that the vendor has made to a package, in order. The creation of the package is left out. */
export async function donesOf({ vendor }: VendorWorld, packageId: string): Promise<string[]> {
  const entries = await vendor.ledger();
  return entries.filter(({ resource, op }) => resource === packageId && op !== 'addWeb').map(({ op }) => op);
}

export const auditOf = async (world: HostingWorld, siteId: string, action: string): Promise<number> =>
  (await auditedOf(world.api, `/v1/sites/${siteId}`)).filter((noted) => noted === action).length;
