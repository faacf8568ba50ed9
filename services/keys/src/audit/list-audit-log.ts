import { type AuditEntry, listAuditLog as endpoint } from '@drydock/contracts/keys/events';
import { problem } from '@drydock/contracts/platform/problem';
import { listFilter, type ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import { assertLiveCaller } from '../orgs/manage-orgs';
import { findOrg } from '../orgs/org.store';
import { type AuditRow, listAudit } from './audit.store';

const viewAudit = (row: AuditRow): AuditEntry => ({
  id: row.id,
  org_id: row.orgId,
  actor_key_id: row.actorKeyId,
  action: row.action,
  target: row.target,
  workflow_id: row.workflowId,
  at: row.at.toISOString(),
});

export const listAuditLog = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const binding = { list: endpoint.id, keyId: caller.keyId, filter: listFilter(caller, query) };
      const page = pager.read(query, binding, now);
      const { org_id: orgId = caller.orgId, children } = query;
      const withChildren = children === 'true';
      if (orgId !== caller.orgId || withChildren) assertLiveCaller(caller);
      if (orgId !== caller.orgId && (await findOrg(database.pool, caller.orgId, orgId)) === null)
        throw problem('org_out_of_scope');
      const rows = await listAudit(
        database.pool,
        { orgId, mode: caller.mode, withChildren },
        { after: page.after, take: page.limit + 1 },
        query,
      );
      return {
        status: 200,
        body: pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view: viewAudit }),
      };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
