import type { VendorScope } from '@drydock/contracts/vendor-snapshots';
import type { StepContext } from '@drydock/workflow/definition';
import { fail } from '@drydock/workflow/step-error';
import type { Refusal } from '@drydock/workflow-kit/refusal.rules';
import { assertStillAllowed } from '../backups/recheck';
import { timelineOf } from '../providers/vendor-timeline';
import type { VendorListing } from '../providers/vendor-timeline.types';
import { sandboxBehaviour } from '../sites/sandbox.rules';
import { findSite } from '../sites/site.store';
import type { WorkContext } from '../sites/work';
import { nameBeside } from './vendor-snapshot.rules';

export interface OrderInput {
  packageId: string;
  scope: VendorScope;
  itemId: string;
  sendBy: string;
}

/** What the later steps go by. */
export interface OrderPlan {
  /** What a mailbox beside the original is called after. */
  name: string;
  /** Ids of the jobs that were there before ours: one beyond them is what came of the order. */
  jobsBefore: string[];
  /** The sandbox's own error paths. */
  failsOnPurpose: boolean;
  slowsOnPurpose: boolean;
}

/** Asks the request's rule again, of the vendor's listing as it is now, and remembers which jobs there are. Nothing is sent. */
export async function recheckOrder(
  context: WorkContext,
  step: StepContext<OrderInput, unknown>,
  rule: (listing: VendorListing) => Refusal | null,
): Promise<OrderPlan> {
  const { packageId, scope, itemId } = step.input;
  const site = await findSite(context.database.pool, step, step.subject.id);
  if (site === null) throw fail('site_not_ready', { internal: 'the site is gone' });
  const timeline = timelineOf(context.vendorTimelines, step.mode);
  const listing = await timeline.read(packageId, step.signal);
  if (listing === null) throw fail('no_vendor_package', { internal: `the vendor has no package ${packageId}` });
  assertStillAllowed(rule(listing));
  const jobs = await timeline.listJobs(packageId, { scope, id: itemId }, step.signal);
  const { fails, slows } = sandboxBehaviour(site, 'fail_restore');
  return { name: nameBeside(listing, itemId), jobsBefore: jobs.map(({ id }) => id), failsOnPurpose: fails, slowsOnPurpose: slows };
}
