import type { createOrg as endpoint } from '@drydock/contracts/orgs';
import { problem } from '@drydock/contracts/problem';
import type { ActHandlers } from '@drydock/service-kit/route';
import { uuidv7 } from 'uuidv7';
import { recordAudit } from '../audit/audit.store';
import type { Tx } from '../database.store';
import { assertLiveCaller } from './live-caller';
import { allowedOf, refusePermissions } from './org.rules';
import { findOrg, insertOrg, lockLineage } from './org.store';
import { viewOrg } from './org.view';

export const createOrg = () =>
  ({
    act: async (tx, { caller, body, now }) => {
      assertLiveCaller(caller);
      const parent = await findOrg(tx, caller.orgId, body.parent_id ?? caller.orgId);
      if (parent === null) throw problem('org_out_of_scope');
      const permissions = [...new Set(body.permissions)];
      const refusal = refusePermissions(permissions, allowedOf(await lockLineage(tx, parent)));
      if (refusal !== null) throw refusal;
      const id = uuidv7();
      const org = await insertOrg(tx, {
        id,
        parentId: parent.id,
        path: [...parent.path, id],
        name: body.name,
        permissions,
        createdAt: now,
      });
      await recordAudit(tx, caller, { orgId: parent.id, action: 'org.create', target: `/v1/orgs/${id}`, at: now });
      return { status: 201, headers: { location: `/v1/orgs/${id}` }, body: viewOrg(org) };
    },
  }) satisfies ActHandlers<typeof endpoint, Tx, void>;
