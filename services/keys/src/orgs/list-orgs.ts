import { type getOrg as getOrgEndpoint, listOrgs as listOrgsEndpoint, type Org } from '@drydock/contracts/keys/orgs';
import { isPermission } from '@drydock/contracts/platform/permissions';
import { problem } from '@drydock/contracts/platform/problem';
import type { ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { assertLiveCaller } from './live-caller';
import type { OrgRecord } from './org.rules';
import { findOrg, listOrgs as listRows } from './org.store';

export const viewOrg = (org: OrgRecord): Org => ({
  id: org.id,
  parent_id: org.parentId,
  name: org.name,
  permissions: org.permissions.filter(isPermission),
  created_at: org.createdAt.toISOString(),
});

export const getOrg = ({ database }: HandlerContext) =>
  ({
    read: async ({ caller, params }) => {
      assertLiveCaller(caller);
      const org = await findOrg(database.pool, caller.orgId, params.orgId);
      if (org === null) throw problem('org_not_found');
      return { status: 200, body: viewOrg(org) };
    },
  }) satisfies ReadHandlers<typeof getOrgEndpoint>;

export const listOrgs = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      assertLiveCaller(caller);
      const binding = { list: listOrgsEndpoint.id, keyId: caller.keyId, filter: caller.orgId };
      const page = pager.read(query, binding, now);
      const rows = await listRows(database.pool, caller.orgId, { after: page.after, take: page.limit + 1 });
      return {
        status: 200,
        body: pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view: viewOrg }),
      };
    },
  }) satisfies ReadHandlers<typeof listOrgsEndpoint>;
