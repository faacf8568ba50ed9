import { type getSite as getSiteEndpoint, listSites as listSitesEndpoint } from '@drydock/contracts/hosting/sites';
import { listFilter, type ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { readSite, viewSite } from './find-site';
import { listSites as listRows } from './site.store';
import { ownerOf } from './site.types';

export const getSite = (context: HandlerContext) =>
  ({
    read: async (request) => ({ status: 200, body: viewSite(await readSite(context, request)) }),
  }) satisfies ReadHandlers<typeof getSiteEndpoint>;

export const listSites = (context: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const { pager, database } = context;
      const binding = { list: listSitesEndpoint.id, keyId: caller.keyId, filter: listFilter(caller, query) };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.pool, ownerOf(caller), { after: page.after, take: page.limit + 1 }, query);
      const body = pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view: viewSite });
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof listSitesEndpoint>;
