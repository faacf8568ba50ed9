import type { SiteVendorSnapshotItem, VendorSnapshotSurface } from '@drydock/contracts/hosting/vendor-snapshots';
import { isInProgress, type UnfinishedWorkflow } from '@drydock/workflow/definition';
import type { VendorItem, VendorListing } from '../providers/vendor-timeline.types';

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

/** The surface of interface.md 2.3: the vendor's own statements, and what Drydock knows about work on the site. */
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
 * Shows the site as `in_progress`, without permission for a snapshot, while a workflow of ours works on it. The vendor
 * knows nothing of the workflow, and its job ends before the workflow does.
 */
export function amendByWork(
  surface: VendorSnapshotSurface,
  unfinished: UnfinishedWorkflow | null,
): VendorSnapshotSurface {
  if (unfinished === null) return surface;
  return { ...surface, can_back_up: false, in_progress: surface.in_progress || isInProgress(unfinished) };
}

/** The surface of a site whose platform has no timelines. */
export const noTimelines: VendorSnapshotSurface = {
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
