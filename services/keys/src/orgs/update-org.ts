import type { updateOrg as endpoint } from '@drydock/contracts/keys/orgs';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http';
import { recordAudit } from '../audit/audit.store';
import { type HandlerContext, seenEverywhere } from '../context/context';
import type { Tx } from '../context/database.store';
import { viewOrg } from './list-orgs';
import { assertLiveCaller } from './live-caller';
import { allowedOf, refusePermissionChange, refusePermissions } from './org.rules';
import { lockForChange, updateOrg as updateRow } from './org.store';

export const updateOrg = (context: HandlerContext) =>
  ({
    execute: async (tx, { params, caller, body, now, assertMatch }) => {
      assertLiveCaller(caller);
      const locked = await lockForChange(tx, caller.orgId, params.orgId);
      if (locked === null) throw problem('org_not_found');
      const { above, org } = locked;
      await assertMatch(() => viewOrg(org));
      const { name, permissions } = body;
      // An organisation may give up rights of its own, but only one above it can give it more.
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
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, void>;
