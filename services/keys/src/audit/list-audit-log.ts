import { listAuditLog as endpoint } from '@drydock/contracts/keys/audit-log';
import type { ReadHandlers } from '@drydock/service/http/route';
import type { HandlerContext } from '../context';
import { listAudit } from './audit.store';
import { viewAudit } from './audit.view';

export const listAuditLog = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const binding = { list: endpoint.id, keyId: caller.keyId, filter: `${caller.orgId}:${caller.mode}` };
      const page = pager.read(query, binding, now);
      const rows = await listAudit(database.pool, caller, { after: page.after, take: page.limit + 1 });
      return { status: 200, body: pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view: viewAudit }) };
    },
  }) satisfies ReadHandlers<typeof endpoint>;
