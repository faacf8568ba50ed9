import type {
  listWebhookDeliveries as listEndpoint,
  replayWebhookDelivery as replayEndpoint,
  testWebhook as testEndpoint,
} from '@drydock/contracts/keys/webhooks';
import { problem } from '@drydock/contracts/platform/problem';
import type { ExecuteHandlers, ReadHandlers } from '@drydock/service/http';
import { recordAudit } from '../audit/audit.store';
import type { HandlerContext } from '../context/context';
import type { Tx } from '../context/database.store';
import { type DeliveryRow, listDeliveries as listRows, replayDelivery as replayRow } from './delivery.store';
import { holdWebhook, requireWebhook } from './manage-webhooks';

const view = ({ seq: _seq, ...delivery }: DeliveryRow) => delivery;

export const listWebhookDeliveries = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, params, query, now }) => {
      const binding = { list: 'listWebhookDeliveries', keyId: caller.keyId, filter: params.webhookId };
      const page = pager.read(query, binding, now);
      const { id } = await requireWebhook(database.pool, caller, params.webhookId);
      const rows = await listRows(database.sql(), id, { after: page.after, take: page.limit + 1 });
      return { status: 200, body: pager.pageOf(rows, page, binding, now, { positionOf: ({ seq }) => seq, view }) };
    },
  }) satisfies ReadHandlers<typeof listEndpoint>;

export const replayWebhookDelivery = ({ database }: HandlerContext) =>
  ({
    execute: async (tx, { caller, params }) => {
      const webhook = await holdWebhook(tx, caller, params.webhookId);
      if (webhook.disabledAt !== null) throw problem('webhook_disabled');
      const row = await replayRow(database.sql(tx), webhook.id, params.deliveryId);
      if (row === null) throw problem('webhook_delivery_not_found');
      return { status: 200, body: view(row) };
    },
  }) satisfies ExecuteHandlers<typeof replayEndpoint, Tx, void>;

/** Makes an ordinary event, which is sent only to this webhook. */
export const testWebhook = () =>
  ({
    execute: async (tx, { caller, params, now }) => {
      const { id, disabledAt } = await holdWebhook(tx, caller, params.webhookId);
      if (disabledAt !== null) throw problem('webhook_disabled');
      const event = await recordAudit(tx, caller, {
        orgId: caller.orgId,
        action: 'webhook.test',
        target: `/v1/webhooks/${id}`,
        at: now,
      });
      return { status: 200, body: event };
    },
  }) satisfies ExecuteHandlers<typeof testEndpoint, Tx, void>;
