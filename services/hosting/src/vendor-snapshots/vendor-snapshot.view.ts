import type { SiteVendorSnapshotItem, VendorSnapshotSurface } from '@drydock/contracts/vendor-snapshots';
import type { UnfinishedWorkflow } from '@drydock/workflow/unfinished.types';
import type { VendorItem, VendorListing } from '../providers/vendor-timeline.types';

const kindsShown: readonly string[] = ['vendor_restore', 'vendor_take_snapshot'];

const viewItem = (item: VendorItem, itemId: string): SiteVendorSnapshotItem => ({
  item_id: itemId,
  name: item.name,
  dead: item.isDead,
  restorable: item.isRestorable,
  in_progress: item.isRunning,
  points: item.points.map(({ handle, takenAt, kind }) => ({ timestamp: handle, taken_at: takenAt.toISOString(), kind })),
});

/** interface.md 2.3: the vendor's own words, and in_progress for as long as a job there or a workflow of ours about one is not at its end. */
export function viewVendorSurface(listing: VendorListing, unfinished: UnfinishedWorkflow | null): VendorSnapshotSurface {
  const { web, databases, mailboxes } = listing;
  const isAtWork = unfinished !== null && unfinished.status !== 'needs_attention' && kindsShown.includes(unfinished.kind);
  return {
    available: listing.isAvailable,
    permitted: listing.isPermitted,
    pro: listing.isPro,
    attached: listing.isAttached,
    can_back_up: listing.canBackUp,
    has_dead_web: listing.hasDeadWeb,
    in_progress: isAtWork || [...(web === null ? [] : [web]), ...databases, ...mailboxes].some(({ isRunning }) => isRunning),
    web: web === null ? null : viewItem(web, ''),
    databases: databases.map((item) => viewItem(item, item.id)),
    mailboxes: mailboxes.map((item) => viewItem(item, item.id)),
  };
}

/** Of a site whose platform has no timelines. */
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
