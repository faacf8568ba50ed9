import { type getComputeServer, listComputeServers } from '@drydock/contracts/compute/compute-servers';
import { listFilter, type ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { readServer } from './find-server';
import { listServers as listRows } from './server.store';
import { ownerOf } from './server.types';
import { viewServer } from './server.view';

export const getServer = (context: HandlerContext) =>
  ({
    read: async (request) => ({
      status: 200,
      body: viewServer(await readServer(context, request), context.targets, request.now),
    }),
  }) satisfies ReadHandlers<typeof getComputeServer>;

export const listServers = (context: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const { pager, database, targets } = context;
      const binding = { list: listComputeServers.id, keyId: caller.keyId, filter: listFilter(caller, query) };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.pool, ownerOf(caller), { after: page.after, take: page.limit + 1 }, query);
      const view = (server: (typeof rows)[number]) => viewServer(server, targets, now);
      return { status: 200, body: pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view }) };
    },
  }) satisfies ReadHandlers<typeof listComputeServers>;
