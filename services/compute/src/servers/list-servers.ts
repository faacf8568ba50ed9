import { listComputeServers as endpoint } from '@drydock/contracts/compute/compute-servers';
import { listFilter } from '@drydock/service/http/paging';
import type { ReadHandlers } from '@drydock/service/http/route';
import { type HandlerContext, ownerOf } from '../context';
import { listServers as listRows } from './server.store';
import { viewServer } from './server.view';

export const listServers = (context: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const { pager, database, targets } = context;
      const binding = { list: endpoint.id, keyId: caller.keyId, filter: listFilter(caller, query) };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.pool, ownerOf(caller), { after: page.after, take: page.limit + 1 }, query);
      const view = (server: (typeof rows)[number]) => viewServer(server, targets, now);
      return { status: 200, body: pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view }) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
