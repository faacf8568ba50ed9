import type { restoreSiteVendorSnapshot as endpoint } from '@drydock/contracts/hosting/vendor-snapshots';
import type { AwaitHandlers } from '@drydock/service/http/route';
import type { UnfinishedWorkflow } from '@drydock/workflow/definition/refusal.rules';
import { assertAllowedOn } from '@drydock/workflow/http/accept-workflow';
import type { HandlerContext } from '../context';
import type { Tx } from '../database.store';
import { holdSite, readSite } from '../sites/find-site';
import { siteResourceKey } from '../sites/site-names';
import { acceptOrder } from './accept-order';
import { type AcceptedOrder, awaitAcceptance } from './await-acceptance';
import { lookMs, readTimelines, type Timelines } from './read-timelines';
import { vendorRestoreWorkflow } from './vendor-restore.workflow';
import { refuseVendorRestore } from './vendor-snapshot.rules';

/** Checks the named point against the live listing and commits the order. The answer is the vendor's own. */
export const restoreVendorSnapshot = (context: HandlerContext) =>
  ({
    preload: async (request) =>
      readTimelines(context, await readSite(context, request), AbortSignal.timeout(lookMs.before)),
    execute: async (tx: Tx, request, timelines) => {
      const { scope, timestamp: handle, item_id: itemId = '', temp_mailbox: isBeside = false } = request.body;
      const site = await holdSite(tx, request);
      const asked = { scope, itemId, handle, isBeside };
      const refuse = (unfinished: UnfinishedWorkflow | null) =>
        refuseVendorRestore({ listing: timelines.listing, unfinished }, asked);
      await assertAllowedOn(context.database.sql(tx), siteResourceKey(site.id), refuse);
      const order = { definition: vendorRestoreWorkflow, scope, itemId, more: { handle, isBeside } };
      return acceptOrder(context, tx, request, site, timelines, order);
    },
    awaitOutcome: async (request, accepted) => awaitAcceptance(context, await readSite(context, request), accepted),
  }) satisfies AwaitHandlers<typeof endpoint, Tx, Timelines, AcceptedOrder>;
