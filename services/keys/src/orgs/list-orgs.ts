import { listOrgs as endpoint } from '@drydock/contracts/keys/orgs';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { assertLiveCaller } from './live-caller';
import { listOrgs as listRows } from './org.store';
import { viewOrg } from './org.view';

export const listOrgs = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      assertLiveCaller(caller);
      const binding = { list: endpoint.id, keyId: caller.keyId, filter: caller.orgId };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.pool, caller.orgId, { after: page.after, take: page.limit + 1 });
      return {
        status: 200,
        body: pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view: viewOrg }),
      };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
