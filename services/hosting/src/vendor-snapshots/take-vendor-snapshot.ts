import type { takeSiteVendorSnapshot as endpoint } from '@drydock/contracts/hosting/vendor-snapshots';
import type { AwaitHandlers } from '@drydock/service/http';
import type { UnfinishedWorkflow } from '@drydock/workflow/definition';
import { assertAllowedOn } from '@drydock/workflow/http';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { holdSite, readSite } from '../sites/find-site';
import { siteResourceKey } from '../sites/site.types';
import { type AcceptedOrder, acceptOrder, awaitAcceptance } from './accept-order';
import { lookMs, readTimelines, type Timelines } from './read-timelines';
import { refuseVendorSnapshot } from './vendor-snapshot.rules';
import { vendorTakeSnapshotWorkflow } from './vendor-take-snapshot.workflow';

export const takeVendorSnapshot = (context: HandlerContext) =>
  ({
    preload: async (request) =>
      readTimelines(context, await readSite(context, request), AbortSignal.timeout(lookMs.before)),
    execute: async (tx: Tx, request, timelines) => {
      const { scope, item_id: itemId = '' } = request.body;
      const site = await holdSite(tx, request);
      const refuse = (unfinished: UnfinishedWorkflow | null) =>
        refuseVendorSnapshot({ listing: timelines.listing, unfinished }, { scope, itemId });
      await assertAllowedOn(context.database.sql(tx), siteResourceKey(site.id), refuse);
      return acceptOrder(context, tx, request, site, timelines, {
        definition: vendorTakeSnapshotWorkflow,
        scope,
        itemId,
        more: {},
      });
    },
    awaitOutcome: async (request, accepted) => awaitAcceptance(context, await readSite(context, request), accepted),
  }) satisfies AwaitHandlers<typeof endpoint, Tx, Timelines, AcceptedOrder>;
