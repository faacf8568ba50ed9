import {
  type AuditEntry,
  type AuditFilter,
  type Event,
  type EventType,
  isEventType,
} from '@drydock/contracts/keys/events';
import { firstIdOf, type Mode } from '@drydock/contracts/platform/values';
import { uuidv7 } from 'uuidv7';
import type { Reader, Tx } from '../context/database.store';
import { storeEvents } from '../events/event.store';
import { Prisma } from '../generated/prisma/client';

export interface AuditRow {
  id: string;
  orgId: string;
  actorKeyId: string | null;
  action: string;
  target: string;
  workflowId: string | null;
  at: Date;
}

/**
 * Writes an audit entry and an event for a change that this service makes, in the transaction of the change. `orgId` is
 * the organisation of the change. It may be below the actor's organisation.
 */
export async function recordAudit(
  tx: Tx,
  actor: { keyId: string | null; mode: Mode },
  entry: { orgId: string; action: EventType; target: string; at: Date },
): Promise<Event> {
  const { keyId, mode } = actor;
  const id = uuidv7();
  const { orgId: org_id, action: type, target: resource, at } = entry;
  await tx.auditLogEntry.create({ data: { id, service: 'keys', mode, actorKeyId: keyId, workflowId: null, ...entry } });
  const event = { id, type, at: at.toISOString(), org_id, resource, actor_key_id: keyId, workflow: null };
  await storeEvents(tx, [{ ...event, mode }]);
  return event;
}

/**
 * Stores the entries that a service delivered. An entry that exists already stays as it is. An entry without a workflow
 * also becomes an event, if there is a type of event for its action. Workflows deliver their own events. Resolves with
 * whether any of the entries is an event.
 */
export async function storeDelivery(
  tx: Tx,
  service: string,
  entries: readonly (AuditEntry & { mode: Mode })[],
): Promise<boolean> {
  await tx.auditLogEntry.createMany({
    data: entries.map((entry) => ({
      id: entry.id,
      service,
      orgId: entry.org_id,
      mode: entry.mode,
      actorKeyId: entry.actor_key_id,
      action: entry.action,
      target: entry.target,
      workflowId: entry.workflow_id,
      at: new Date(entry.at),
    })),
    skipDuplicates: true,
  });
  const events = entries.flatMap(({ action: type, target: resource, workflow_id, ...entry }) =>
    workflow_id === null && isEventType(type) ? [{ ...entry, type, resource, workflow: null }] : [],
  );
  if (events.length > 0) await storeEvents(tx, events);
  return events.length > 0;
}

/** The organisations whose entries are listed: `orgId` alone, or `orgId` and all below it. */
export interface AuditScope {
  orgId: string;
  mode: Mode;
  withChildren: boolean;
}

/**
 * Lists entries, newest first, beginning after the entry `after`. Takes at most one page of entries from each
 * organisation.
 */
export function listAudit(
  tx: Reader,
  scope: AuditScope,
  page: { after: string | null; take: number },
  filter: AuditFilter,
): Promise<AuditRow[]> {
  const { actor_key_id: actorKeyId, action, target, created_after: from, created_before: to } = filter;
  const nearIdOf = (moment: Date, slackMs: number): string => firstIdOf(new Date(moment.getTime() + slackMs));
  const conditions = [
    Prisma.sql`l.mode = ${scope.mode}::"mode"`,
    ...(actorKeyId === undefined ? [] : [Prisma.sql`l.actor_key_id = ${actorKeyId}::uuid`]),
    ...(action === undefined ? [] : [Prisma.sql`l.action = ${action}`]),
    ...(target === undefined ? [] : [Prisma.sql`l.target = ${target}`]),
    ...(page.after === null ? [] : [Prisma.sql`l.id < ${page.after}::uuid`]),
    ...(from === undefined ? [] : [Prisma.sql`l.at >= ${from} AND l.id >= ${nearIdOf(from, -clockSlackMs)}::uuid`]),
    ...(to === undefined ? [] : [Prisma.sql`l.at < ${to} AND l.id < ${nearIdOf(to, clockSlackMs)}::uuid`]),
  ];
  const orgs = scope.withChildren
    ? Prisma.sql`${scope.orgId}::uuid = ANY (o.path)`
    : Prisma.sql`o.id = ${scope.orgId}::uuid`;
  return tx.$queryRaw<AuditRow[]>`
    SELECT e.* FROM orgs o CROSS JOIN LATERAL (
      SELECT l.id, l.org_id AS "orgId", l.actor_key_id AS "actorKeyId", l.action, l.target,
        l.workflow_id AS "workflowId", l.at
      FROM audit_log l WHERE l.org_id = o.id AND ${Prisma.join(conditions, ' AND ')} ORDER BY l.id DESC
      LIMIT ${page.take}::int
    ) e WHERE ${orgs} ORDER BY e.id DESC LIMIT ${page.take}::int`;
}

/**
 * The largest difference between an entry's time and the time in its id, in milliseconds. The two times may come from
 * the clocks of different machines. The log is indexed by id, so a query by time reads only the ids of the requested
 * time, widened by this difference.
 */
const clockSlackMs = 3_600_000;
