import type {
  getSiteVendorSnapshots as getSiteVendorSnapshotsEndpoint,
  SiteVendorSnapshotItem,
  VendorSnapshotSurface,
} from '@drydock/contracts/hosting/vendor-snapshots';
import { type Problem, problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import { isInProgress, type UnfinishedWorkflow } from '@drydock/workflow/definition';
import { findUnfinished } from '@drydock/workflow/store';
import type { HandlerContext } from '../context/context';
import { VendorError } from '../providers/vendor-timeline';
import type { VendorItem, VendorListing } from '../providers/vendor-timeline.types';
import { findVendorPackageId } from '../sites/site.store';
import { type Site, siteResourceKey } from '../sites/site.types';
import { readSite } from '../sites/site-record';

const viewItem = (item: VendorItem, itemId: string): SiteVendorSnapshotItem => ({
  item_id: itemId,
  name: item.name,
  dead: item.isDead,
  restorable: item.isRestorable,
  in_progress: item.isRunning,
  points: item.points.map(({ handle, takenAt, kind }) => ({
    timestamp: handle,
    taken_at: takenAt.toISOString(),
    kind,
  })),
});

/** The surface of interface.md 2.3: the listing of the vendor, and Drydock's own unfinished work on the site. */
export function viewVendorSurface(
  listing: VendorListing,
  unfinished: UnfinishedWorkflow | null,
): VendorSnapshotSurface {
  const { web, databases, mailboxes } = listing;
  const said: VendorSnapshotSurface = {
    available: listing.isAvailable,
    permitted: listing.isPermitted,
    pro: listing.isPro,
    attached: listing.isAttached,
    can_back_up: listing.canBackUp,
    has_dead_web: listing.hasDeadWeb,
    in_progress: [...(web === null ? [] : [web]), ...databases, ...mailboxes].some(({ isRunning }) => isRunning),
    web: web === null ? null : viewItem(web, ''),
    databases: databases.map((item) => viewItem(item, item.id)),
    mailboxes: mailboxes.map((item) => viewItem(item, item.id)),
  };
  return amendByWork(said, unfinished);
}

/**
 * Adds Drydock's own work to the flags of the vendor, which knows no workflows. A job of the vendor ends before the
 * workflow that requested it. While a workflow on the site is unfinished, no snapshot may be taken. The site also
 * counts as `in_progress`, unless that workflow waits for staff.
 */
export function amendByWork(
  surface: VendorSnapshotSurface,
  unfinished: UnfinishedWorkflow | null,
): VendorSnapshotSurface {
  if (unfinished === null) return surface;
  return { ...surface, can_back_up: false, in_progress: surface.in_progress || isInProgress(unfinished) };
}

/** The surface of a site whose platform has no timelines. */
const noTimelines: VendorSnapshotSurface = {
  available: false,
  permitted: false,
  pro: false,
  attached: false,
  can_back_up: false,
  has_dead_web: false,
  in_progress: false,
  web: null,
  databases: [],
  mailboxes: [],
};

export interface Timelines {
  packageId: string;
  listing: VendorListing;
}

/** Retry-After while the vendor does not answer (decisions.md 1). */
const retryAfterSeconds = 30;

export const vendorUnavailable = (cause?: unknown): Problem =>
  problem('dependency_unavailable', {
    extra: { dependency: 'vendor' },
    retryAfterSeconds,
    ...(cause === undefined ? {} : { cause }),
  });

/**
 * Limits, in milliseconds, for reads of the vendor's listing: `before` Drydock accepts a request, and `after` the
 * request has waited for the vendor. Both reads and the wait, which lasts at most `startDecidedMs`, fit into
 * `answerWithinMs` of packages/service.
 */
export const lookMs = { before: 4_000, after: 2_500 };

/**
 * The live listing of the package of the site. Throws `no_vendor_package`, and 503 if the vendor fails or has not
 * answered when `signal` aborts.
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
  }) satisfies ReadHandlers<typeof getSiteVendorSnapshotsEndpoint>;
