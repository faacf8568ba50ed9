import { listDatabaseWorkflows as endpoint } from '@drydock/contracts/database-workflows';
import type { ReadHandlers } from '@drydock/service-kit/route';
import { listWorkflows as listRows } from '@drydock/workflow/read-workflow';
import type { HandlerContext } from '../context';
import { readDatabase } from '../databases/find-database';
import { scopeOf } from './workflow-scope';

export const listWorkflows = (context: HandlerContext) =>
  ({
    read: async (request) => {
      const { pager, database } = context;
      const { caller, params, query, now } = request;
      const binding = { list: endpoint.id, keyId: caller.keyId, filter: `${caller.orgId}:${caller.mode}:${params.databaseId}` };
      const page = pager.read(query, binding, now);
      await readDatabase(context, request);
      const before = page.after === null ? {} : { beforeId: page.after };
      // One more than asked for: its presence is what the pager calls has_more.
      const { items } = await listRows(database.sql(), scopeOf(request), { limit: page.limit + 1, ...before });
      const body = pager.pageOf(items, page, binding, now, { positionOf: ({ id }) => id, view: (workflow) => workflow });
      return { status: 200, body };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
