import {
  type createOrg as createOrgEndpoint,
  type getOrg as getOrgEndpoint,
  listOrgs as listOrgsEndpoint,
  type Org,
  type updateOrg as updateOrgEndpoint,
} from '@drydock/contracts/keys/orgs';
import { isPermission } from '@drydock/contracts/platform/permissions';
import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import { uuidv7 } from 'uuidv7';
import { recordAudit } from '../audit/audit.store';
import { type HandlerContext, seenEverywhere } from '../context/context';
import type { Tx } from '../context/database.store';
import { allowedOf, type OrgRecord, refuseDepth, refusePermissionChange, refusePermissions } from './org.rules';
import {
  findOrg,
  insertOrg,
  listOrgs as listRows,
  lockForChange,
  lockLineage,
  updateOrg as updateRow,
} from './org.store';

/**
 * Refuses a sandbox key. Live and sandbox share one tree of organisations, which a sandbox key may neither see nor
 * change.
 */
export function assertLiveCaller({ mode }: Caller): void {
  if (mode === 'sandbox')
    throw problem('sandbox_key', { detail: 'Organisations are managed by live keys. Use a live key.' });
}

const viewOrg = (org: OrgRecord): Org => ({
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

export const createOrg = () =>
  ({
    execute: async (tx, { caller, body, now }) => {
      assertLiveCaller(caller);
      const lineage = await lockLineage(tx, caller.orgId, body.parent_id ?? caller.orgId);
      const parent = lineage?.at(-1);
      if (lineage === null || parent === undefined) throw problem('org_out_of_scope');
      const permissions = [...new Set(body.permissions)];
      const refusal = refuseDepth(parent.path) ?? refusePermissions(body.permissions, allowedOf(lineage));
      if (refusal !== null) throw refusal;
      const id = uuidv7();
      const path = [...parent.path, id];
      const org = await insertOrg(tx, { id, parentId: parent.id, path, name: body.name, permissions, createdAt: now });
      if (org === null) throw new Error('the organisation was not inserted');
      const location = `/v1/orgs/${id}`;
      await recordAudit(tx, caller, { orgId: parent.id, action: 'org.create', target: location, at: now });
      return { status: 201, headers: { location }, body: viewOrg(org) };
    },
  }) satisfies ExecuteHandlers<typeof createOrgEndpoint, Tx, void>;

export const updateOrg = (context: HandlerContext) =>
  ({
    execute: async (tx, { params, caller, body, now, assertMatch }) => {
      assertLiveCaller(caller);
      const locked = await lockForChange(tx, caller.orgId, params.orgId);
      if (locked === null) throw problem('org_not_found');
      const { above, org } = locked;
      await assertMatch(() => viewOrg(org));
      const { name, permissions } = body;
      // A key of the organisation itself may only take permissions from the organisation. A key of an organisation
      // above may also give permissions.
      const bound = allowedOf(org.id === caller.orgId ? [...above, org] : above);
      const refusal =
        permissions === undefined
          ? null
          : (refusePermissions(permissions, bound) ?? refusePermissionChange(org, permissions, caller.scopes));
      if (refusal !== null) throw refusal;
      const changed = await updateRow(tx, org.id, {
        ...(name === undefined ? {} : { name }),
        ...(permissions === undefined ? {} : { permissions: [...new Set(permissions)] }),
      });
      await recordAudit(tx, caller, { orgId: org.id, action: 'org.update', target: `/v1/orgs/${org.id}`, at: now });
      return { status: 200, body: viewOrg(changed) };
    },
    beforeAnswer: async ({ body }) => {
      if (body.permissions !== undefined) await seenEverywhere(context);
    },
  }) satisfies ExecuteHandlers<typeof updateOrgEndpoint, Tx, void>;
