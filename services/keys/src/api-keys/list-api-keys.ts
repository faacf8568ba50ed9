import { listApiKeys as endpoint } from '@drydock/contracts/keys/api-keys';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { viewApiKey } from './api-key.view';
import { listOneOrg, listSubtree } from './api-key-list.store';

export const listApiKeys = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const { org_id: onlyOrgId } = query;
      const binding = { list: endpoint.id, keyId: caller.keyId, filter: onlyOrgId ?? '' };
      const request = pager.read(query, binding, now);
      const page = { after: request.after, take: request.limit + 1 };
      const listed =
        onlyOrgId === undefined
          ? listSubtree(database.pool, caller, page)
          : listOneOrg(database.pool, caller, onlyOrgId, page);
      const rows = await listed;
      if (rows === null) throw problem('org_out_of_scope');
      return {
        status: 200,
        body: pager.pageOf(rows, request, binding, now, { positionOf: ({ id }) => id, view: viewApiKey }),
      };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
