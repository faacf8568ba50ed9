import type { createOrg as endpoint } from '@drydock/contracts/keys/orgs';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers } from '@drydock/service/http';
import { uuidv7 } from 'uuidv7';
import { recordAudit } from '../audit/audit.store';
import type { Tx } from '../context/database.store';
import { viewOrg } from './list-orgs';
import { assertLiveCaller } from './live-caller';
import { allowedOf, refuseDepth, refusePermissions } from './org.rules';
import { insertOrg, lockLineage } from './org.store';

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
  }) satisfies ExecuteHandlers<typeof endpoint, Tx, void>;
