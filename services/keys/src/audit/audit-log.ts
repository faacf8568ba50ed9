import {
  type AuditEntry,
  auditDeliverySchema,
  eventDeliverySchema,
  listAuditLog as listAuditLogEndpoint,
} from '@drydock/contracts/keys/events';
import { problem } from '@drydock/contracts/platform/problem';
import { tokenKeys } from '@drydock/service/access';
import { type InternalRoute, internalRoute, listFilter, type ReadHandlers } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';
import type { KeysDatabase } from '../context/database.store';
import { storeEvents } from '../events/event.store';
import { assertLiveCaller } from '../orgs/manage-orgs';
import { findOrg } from '../orgs/org.store';
import { type AuditRow, listAudit, storeDelivery } from './audit.store';

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
      const binding = { list: listAuditLogEndpoint.id, keyId: caller.keyId, filter: listFilter(caller, query) };
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
  }) satisfies ReadHandlers<typeof listAuditLogEndpoint>;

/**
 * Receives the audit entries and the workflow events that the other services deliver. Each service signs with its own
 * secret and may deliver only under its own name. `eventsArrived` is called after each commit of events: of workflow
 * events, and of audit entries that become events.
 */
export function takeDeliveries(
  database: KeysDatabase,
  secrets: Readonly<Record<string, string>>,
  eventsArrived: () => void,
): InternalRoute[] {
  const issuers = Object.fromEntries(Object.entries(secrets).map(([service, secret]) => [service, tokenKeys(secret)]));
  const assertOwn = (service: string, issuer: string): void => {
    if (service !== issuer) throw problem('invalid_request', { internal: `${issuer} delivered entries of ${service}` });
  };
  return [
    internalRoute({
      method: 'POST',
      path: '/internal/audit',
      issuers,
      body: auditDeliverySchema,
      handle: async ({ body, issuer }) => {
        assertOwn(body.service, issuer);
        const hasEvents = await database.transaction((tx) => storeDelivery(tx, issuer, body.entries));
        if (hasEvents) eventsArrived();
        return { status: 204 };
      },
    }),
    internalRoute({
      method: 'POST',
      path: '/internal/events',
      issuers,
      body: eventDeliverySchema,
      handle: async ({ body, issuer }) => {
        assertOwn(body.service, issuer);
        await database.transaction((tx) => storeEvents(tx, body.entries));
        eventsArrived();
        return { status: 204 };
      },
    }),
  ];
}
