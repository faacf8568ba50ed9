import type { EndpointDefinition } from '@drydock/contracts/platform/endpoint';
import { listWorkflows as listRows } from '@drydock/workflow/read-workflow';
import { type AboutHome, scopeOf, type WorkflowHome } from './workflow-home';

interface ListRequest<Name extends string> extends AboutHome<Name> {
  query: { cursor?: string | undefined; limit?: string | undefined };
  now: Date;
}

/** `list`: the endpoint, whose cursors no other one takes. */
export const listWorkflows = <Tx, Name extends string>(home: WorkflowHome<Tx, Name>, list: Pick<EndpointDefinition, 'id'>) => ({
  read: async (request: ListRequest<Name>) => {
    const { pager, database } = home.context;
    const { caller, params, query, now } = request;
    const id = params[home.param];
    const binding = { list: list.id, keyId: caller.keyId, filter: `${caller.orgId}:${caller.mode}:${id}` };
    const page = pager.read(query, binding, now);
    const before = page.after === null ? {} : { beforeId: page.after };
    // One more than asked for: its presence is what the pager calls has_more.
    const { items } = await listRows(database.sql(), scopeOf(home, request), { limit: page.limit + 1, ...before });
    // Workflows outlive their thing in a list as they do one by one: only where there are none is it asked whether there is a thing.
    if (items.length === 0 && page.after === null) await home.assertThere(caller, id);
    const body = pager.pageOf(items, page, binding, now, { positionOf: (workflow) => workflow.id, view: (workflow) => workflow });
    return { status: 200 as const, body };
  },
});
