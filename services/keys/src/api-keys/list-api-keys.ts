import {
  type getApiKey as getApiKeyEndpoint,
  listApiKeys as listApiKeysEndpoint,
} from '@drydock/contracts/keys/api-keys';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { findApiKey, listOneOrg, listSubtree } from './api-key.store';
import { viewApiKey, viewDetail } from './api-key.view';

export const getApiKey = ({ database }: HandlerContext) =>
  ({
    read: async ({ params, caller }) => {
      const key = await findApiKey(database.pool, caller, params.keyId);
      if (key === null) throw problem('api_key_not_found');
      return { status: 200, body: viewDetail(key) };
    },
  }) satisfies ReadHandlers<typeof getApiKeyEndpoint>;

export const listApiKeys = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const { org_id: onlyOrgId } = query;
      const binding = { list: listApiKeysEndpoint.id, keyId: caller.keyId, filter: onlyOrgId ?? '' };
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
  }) satisfies ReadHandlers<typeof listApiKeysEndpoint>;
