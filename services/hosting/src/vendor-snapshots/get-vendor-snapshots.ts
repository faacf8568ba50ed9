import type { getSiteVendorSnapshots as endpoint } from '@drydock/contracts/vendor-snapshots';
import type { ReadHandlers } from '@drydock/service-kit/route';
import type { HandlerContext } from '../context';
import { findUnfinished } from '../site-workflows/unfinished.store';
import { readSite } from '../sites/find-site';
import { readTimelines } from './read-timelines';
import { noTimelines, viewVendorSurface } from './vendor-snapshot.view';

export const getVendorSnapshots = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const site = await readSite(context, request);
      if (site.platform !== 'vendor') return { status: 200, body: noTimelines };
      const { listing } = await readTimelines(context, site);
      return { status: 200, body: viewVendorSurface(listing, await findUnfinished(context.database.pool, site.id)) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
