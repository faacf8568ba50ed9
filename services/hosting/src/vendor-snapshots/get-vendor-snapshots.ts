import type { getSiteVendorSnapshots as endpoint } from '@drydock/contracts/hosting/vendor-snapshots';
import type { ReadHandlers } from '@drydock/service/http/route';
import { findUnfinished } from '@drydock/workflow/store/start-workflow';
import type { HandlerContext } from '../context';
import { readSite } from '../sites/find-site';
import { siteResourceKey } from '../sites/site-names';
import { readTimelines } from './read-timelines';
import { noTimelines, viewVendorSurface } from './vendor-snapshot.view';

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
