import type { getSiteVendorSnapshots as endpoint } from '@drydock/contracts/hosting/vendor-snapshots';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import { findUnfinished } from '@drydock/workflow/store';
import type { HandlerContext } from '../context/context';
import { VendorError } from '../providers/vendor-timeline';
import type { VendorListing } from '../providers/vendor-timeline.types';
import { readSite } from '../sites/find-site';
import { findVendorPackageId } from '../sites/site.store';
import { type Site, siteResourceKey } from '../sites/site.types';
import { noTimelines, viewVendorSurface } from './vendor-snapshot.view';

export interface Timelines {
  packageId: string;
  listing: VendorListing;
}

/** Retry-After while the vendor does not answer, in seconds (decisions.md 1). */
const retryAfterSeconds = 30;

export const vendorUnavailable = (cause?: unknown): Problem =>
  problem('dependency_unavailable', {
    extra: { dependency: 'vendor' },
    retryAfterSeconds,
    ...(cause === undefined ? {} : { cause }),
  });

/**
 * Limits for reading the listing before an order is accepted, and once more for its answer. Together with the wait for
 * the vendor they are less than `answerWithinMs` of packages/service, and `after` less than the time that perform.ts
 * reserves.
 */
export const lookMs = { before: 4_000, after: 2_500 };

/**
 * The vendor's live listing of the site's package. Throws `no_vendor_package`, and 503 when the vendor has not answered
 * by the time that `signal` aborts.
 */
export async function readTimelines(context: HandlerContext, site: Site, signal?: AbortSignal): Promise<Timelines> {
  const packageId = await findVendorPackageId(context.database.pool, site);
  if (packageId === null) throw problem('no_vendor_package');
  const timeline = context.vendorTimelines[site.mode];
  if (timeline === undefined) throw vendorUnavailable();
  const listing = await timeline.read(packageId, signal).catch((error: unknown) => {
    throw error instanceof VendorError || signal?.aborted === true ? vendorUnavailable(error) : error;
  });
  if (listing === null) throw problem('no_vendor_package', { internal: `the vendor has no package ${packageId}` });
  return { packageId, listing };
}

export const getVendorSnapshots = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      if (site.platform !== 'vendor') return { status: 200, body: noTimelines };
      const { listing } = await readTimelines(context, site);
      const unfinished = await findUnfinished(context.database.sql(), siteResourceKey(site.id));
      return { status: 200, body: viewVendorSurface(listing, unfinished) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
