import { listApiKeys as endpoint } from '@drydock/contracts/api-keys';
import { problem } from '@drydock/contracts/problem';
import type { ReadHandlers } from '@drydock/service-kit/route';
import { type HandlerContext, visibleModes } from '../context';
import { findOrg } from '../orgs/org.store';
import { listApiKeys as listRows } from './api-key.store';
import { viewApiKey } from './api-key.view';

export const listApiKeys = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const onlyOrgId = query.org_id;
      const binding = { list: endpoint.id, keyId: caller.keyId, filter: onlyOrgId ?? '' };
      const page = pager.read(query, binding, now);
      const isReachable = onlyOrgId === undefined || (await findOrg(database.pool, caller.orgId, onlyOrgId)) !== null;
      if (!isReachable) throw problem('org_out_of_scope');
      const scope = { orgId: caller.orgId, modes: visibleModes(caller) };
      const rows = await listRows(database.pool, scope, { onlyOrgId, after: page.after, take: page.limit + 1, now });
      return { status: 200, body: pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view: viewApiKey }) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
