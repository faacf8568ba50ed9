import type { VendorScope } from '@drydock/contracts/hosting/vendor-snapshots';
import { type Refusal, refusalByWorkflow, type UnfinishedWorkflow } from '@drydock/workflow/definition';
import type { VendorItem, VendorListing } from '../providers/vendor-timeline.types';

export interface VendorWish {
  scope: VendorScope;
  /** '' if none was named. */
  itemId: string;
  handle: string;
  /** Whether the restore makes a mailbox beside the original. */
  isBeside: boolean;
}

export interface VendorWorld {
  listing: VendorListing;
  unfinished: UnfinishedWorkflow | null;
}

export function itemsOf(listing: VendorListing, scope: VendorScope): readonly VendorItem[] {
  if (scope === 'web') return listing.web === null ? [] : [listing.web];
  return scope === 'database' ? listing.databases : listing.mailboxes;
}

/** The timeline with this scope and id. For the scope `web` the id is ignored. */
export const findItem = (
  listing: VendorListing,
  { scope, itemId }: Pick<VendorWish, 'scope' | 'itemId'>,
): VendorItem | undefined => itemsOf(listing, scope).find(({ id }) => scope === 'web' || id === itemId);

/**
 * The name for a mailbox beside the original, without the prefix `temp-`. It is the name of the original. If the
 * mailbox `temp-…` of that name exists, a number goes in front of it, so that nobody's mail is overwritten.
 */
export function nameBeside({ mailboxes }: VendorListing, itemId: string): string {
  const own = mailboxes.find(({ id }) => id === itemId)?.name ?? itemId;
  const isTaken = (name: string): boolean => mailboxes.some((mailbox) => mailbox.name === `temp-${name}`);
  let name = own;
  for (let number = 2; isTaken(name); number += 1) name = `${number}-${own}`;
  return name;
}

/**
 * The first reason why the point may not be restored; null if there is none. The checks come in this order: the fields
 * of the request, the existence of the point, work in progress, the state of the timeline.
 */
export function refuseVendorRestore({ listing, unfinished }: VendorWorld, wish: VendorWish): Refusal | null {
  const refusal = refuseVendorWish(wish) ?? refuseUnlisted(listing, wish);
  if (refusal !== null) return refusal;
  const isAtWork = refusalByWorkflow(unfinished) ?? refusalByJob(findItem(listing, wish));
  return isAtWork ?? refuseVendorPoint(listing, wish);
}

function refuseVendorWish({ scope, itemId, isBeside }: VendorWish): Refusal | null {
  if (scope !== 'web' && itemId === '') return { code: 'item_required' };
  if (scope === 'web' && itemId !== '') return { code: 'item_not_allowed' };
  return isBeside && scope !== 'mailbox' ? { code: 'temp_mailbox_not_allowed' } : null;
}

function refuseUnlisted(listing: VendorListing, wish: VendorWish): Refusal | null {
  const item = findItem(listing, wish);
  return item?.points.some(({ handle }) => handle === wish.handle) === true ? null : { code: 'restore_point_stale' };
}

/** The reason why the point cannot be restored: the listing lacks it, or its timeline cannot be restored. */
export function refuseVendorPoint(listing: VendorListing, wish: VendorWish): Refusal | null {
  const item = findItem(listing, wish);
  return (
    refuseUnlisted(listing, wish) ??
    (item?.isRestorable === true && !item.isDead ? null : { code: 'scope_not_restorable' })
  );
}

export function refuseVendorSnapshot(
  { listing, unfinished }: VendorWorld,
  wish: Pick<VendorWish, 'scope' | 'itemId'>,
): Refusal | null {
  const { scope, itemId } = wish;
  if (scope === 'web' && itemId !== '') return { code: 'item_not_allowed' };
  if (scope === 'database' && itemId === '') return { code: 'item_required' };
  // Only a database must be in the listing. A website without a restore point is not in the listing, but the vendor
  // takes its first snapshot.
  if (scope === 'database' && findItem(listing, wish) === undefined) return { code: 'item_not_found' };
  const isAtWork = refusalByWorkflow(unfinished) ?? refusalByJob(findItem(listing, wish));
  if (isAtWork !== null) return isAtWork;
  return scope !== 'mailbox' && listing.canBackUp ? null : { code: 'snapshot_unavailable' };
}

/**
 * The refusal for a job of the vendor that no workflow has requested. The callers check for an unfinished workflow
 * before, so the refusal names none.
 */
const refusalByJob = (item: VendorItem | undefined): Refusal | null =>
  item?.isRunning === true ? { code: 'operation_in_progress' } : null;
