import type { Webhook as WebhookView } from '@drydock/contracts/keys/webhooks';
import { lockRow, type Sql } from '@drydock/service/database';
import type { Reader, Tx } from '../context/database.store';
import { Prisma } from '../generated/prisma/client';
import type { WebhookModel } from '../generated/prisma/models';

export type WebhookRow = WebhookModel;

interface Owner {
  orgId: string;
  mode: 'live' | 'sandbox';
}

export const viewWebhook = (row: WebhookRow): WebhookView => ({
  id: row.id,
  url: row.url,
  event_types: row.eventTypes,
  description: row.description,
  secret_version: row.generation,
  enabled: row.disabledAt === null,
  disabled_reason: reasonOf(row.disabledReason),
  failing_since: row.failingSince?.toISOString() ?? null,
  created_at: row.createdAt.toISOString(),
});

/** Narrows the column's type. A check constraint keeps other values out. */
const reasonOf = (reason: string | null): WebhookView['disabled_reason'] =>
  reason === 'customer' || reason === 'failures' || reason === 'gone' ? reason : null;

export const findWebhook = (tx: Reader, { orgId, mode }: Owner, id: string): Promise<WebhookRow | null> =>
  tx.webhook.findFirst({ where: { id, orgId, mode } });

export const lockWebhook = (tx: Tx, owner: Owner, id: string): Promise<WebhookRow | null> =>
  lockRow<WebhookRow>(tx, { name: 'webhooks', fields: Prisma.WebhookScalarFieldEnum }, owner, id);

export const listWebhooks = (
  tx: Reader,
  { orgId, mode }: Owner,
  page: { after: string | null; take: number },
): Promise<WebhookRow[]> =>
  tx.webhook.findMany({
    where: { orgId, mode, ...(page.after === null ? {} : { id: { lt: page.after } }) },
    orderBy: { id: 'desc' },
    take: page.take,
  });

/**
 * Inserts a webhook. Null if the organisation has `max` webhooks in this mode. The organisation's row is locked, so
 * that two simultaneous calls cannot exceed `max`.
 */
export async function insertWebhook(
  tx: Tx,
  row: Pick<WebhookRow, 'id' | 'orgId' | 'mode' | 'url' | 'eventTypes' | 'description' | 'createdAt'>,
  max: number,
): Promise<WebhookRow | null> {
  await tx.$queryRaw`SELECT id FROM orgs WHERE id = ${row.orgId}::uuid FOR NO KEY UPDATE`;
  const there = await tx.webhook.count({ where: { orgId: row.orgId, mode: row.mode } });
  return there >= max ? null : tx.webhook.create({ data: row });
}

export const hasWebhooks = async (sql: Sql): Promise<boolean> =>
  (await sql.query('SELECT FROM webhooks LIMIT 1')).length > 0;

export const changeWebhook = (tx: Tx, id: string, data: Prisma.WebhookUpdateInput): Promise<WebhookRow> =>
  tx.webhook.update({ where: { id }, data });

export const removeWebhook = async (tx: Tx, { orgId, mode }: Owner, id: string): Promise<boolean> =>
  (await tx.webhook.deleteMany({ where: { id, orgId, mode } })).count > 0;
