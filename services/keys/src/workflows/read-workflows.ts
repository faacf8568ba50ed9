import { type getWorkflow as getEndpoint, listWorkflows as listEndpoint } from '@drydock/contracts/keys/events';
import { problem } from '@drydock/contracts/platform/problem';
import { listFilter, type ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { findWorkflow, listWorkflows as listRows } from './workflow.store';

export const listWorkflows = ({ database, pager }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const binding = { list: listEndpoint.id, keyId: caller.keyId, filter: listFilter(caller, query) };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.sql(), caller, { after: page.after, take: page.limit + 1 }, query);
      return {
        status: 200,
        body: pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view: (row) => row }),
      };
    },
  }) satisfies ReadHandlers<typeof listEndpoint>;

export const getWorkflow = ({ database }: HandlerContext) =>
  ({
    read: async ({ caller, params }) => {
      const workflow = await findWorkflow(database.sql(), caller, params.workflowId);
      if (workflow === null) throw problem('workflow_not_found');
      return { status: 200, body: workflow };
    },
  }) satisfies ReadHandlers<typeof getEndpoint>;
