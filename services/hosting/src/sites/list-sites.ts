import { listSites as endpoint } from '@drydock/contracts/hosting/sites';
import { listFilter } from '@drydock/service/http/paging';
import type { ReadHandlers } from '@drydock/service/http/route';
import { type HandlerContext, ownerOf } from '../context';
import { listSites as listRows } from './site.store';
import { viewSite } from './site.view';

export const listSites = (context: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const { pager, database } = context;
      const binding = { list: endpoint.id, keyId: caller.keyId, filter: listFilter(caller, query) };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.pool, ownerOf(caller), { after: page.after, take: page.limit + 1 }, query);
      const body = pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view: viewSite });
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
