import type { updateOrg as endpoint } from '@drydock/contracts/orgs';
import { problem } from '@drydock/contracts/problem';
import type { ActHandlers } from '@drydock/service-kit/route';
import { recordAudit } from '../audit/audit.store';
import type { Tx } from '../database.store';
import { assertLiveCaller } from './live-caller';
import { allowedOf, refusePermissions } from './org.rules';
import { findOrg, lockLineage, updateOrg as updateRow } from './org.store';
import { viewOrg } from './org.view';

export const updateOrg = () =>
  ({
    act: async (tx, { params, caller, body, now }) => {
      assertLiveCaller(caller);
      const org = await findOrg(tx, caller.orgId, params.orgId);
      if (org === null) throw problem('org_not_found');
      const permissions = body.permissions === undefined ? undefined : [...new Set(body.permissions)];
      if (permissions !== undefined) {
        const lineage = await lockLineage(tx, org);
        // An organisation may give up rights of its own, but only one above it can give it more.
        const bound = org.id === caller.orgId ? lineage : lineage.slice(0, -1);
        const refusal = refusePermissions(permissions, allowedOf(bound));
        if (refusal !== null) throw refusal;
      }
      const { name } = body;
      const changed = await updateRow(tx, org.id, {
        ...(name === undefined ? {} : { name }),
        ...(permissions === undefined ? {} : { permissions }),
      });
      await recordAudit(tx, caller, { orgId: org.id, action: 'org.update', target: `/v1/orgs/${org.id}`, at: now });
      return { status: 200, body: viewOrg(changed) };
    },
  }) satisfies ActHandlers<typeof endpoint, Tx, void>;
