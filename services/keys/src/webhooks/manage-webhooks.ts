import type * as endpoints from '@drydock/contracts/keys/webhooks';
import {
  listWebhooks as listEndpoint,
  type WebhookWithSecret,
  webhookSchema,
  webhooksMax,
} from '@drydock/contracts/keys/webhooks';
import { problem } from '@drydock/contracts/platform/problem';
import type { Caller } from '@drydock/service/access';
import type { ExecuteHandlers, ReadHandlers, ReplaySecret } from '@drydock/service/http';
import { isEndpointAllowed } from '@drydock/service/outbound';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import { recordAudit } from '../audit/audit.store';
import type { HandlerContext } from '../context/context';
import type { Reader, Tx } from '../context/database.store';
import {
  type DeliveryRow,
  holdDeliveries,
  listDeliveries as listRows,
  replayDelivery as replayRow,
  resumeDeliveries,
} from './delivery.store';
import * as store from './webhook.store';

const pathOf = (id: string): string => `/v1/webhooks/${id}`;

/** The caller's webhook. Throws `webhook_not_found`. */
export async function requireWebhook(tx: Reader, caller: Caller, id: string): Promise<store.WebhookRow> {
  const row = await store.findWebhook(tx, caller, id);
  if (row === null) throw problem('webhook_not_found');
  return row;
}

/**
 * Locks the row of the caller's webhook until the transaction ends. Throws `webhook_not_found` if there is no such
 * webhook.
 */
export async function holdWebhook(tx: Tx, caller: Caller, id: string): Promise<store.WebhookRow> {
  const row = await store.lockWebhook(tx, caller, id);
  if (row === null) throw problem('webhook_not_found');
  return row;
}

/**
 * Refuses a URL whose text alone shows that it is not allowed. The host's name is not resolved here, because the sender
 * checks every address that it connects to.
 */
function assertUrlAllowed({ webhooksAllowed }: HandlerContext, url: string | undefined): void {
  if (url !== undefined && !isEndpointAllowed(url, webhooksAllowed)) throw problem('webhook_url_refused');
}

const storedSchema = webhookSchema.extend({ made_with: z.string().optional() });

/** Keeps the secret out of the stored answer. A replay derives the secret again. */
const replaySecret = ({
  webhookSecrets,
}: HandlerContext): ReplaySecret<typeof endpoints.createWebhook> &
  ReplaySecret<typeof endpoints.rotateWebhookSecret> => ({
  remove: ({ secret: _secret, ...webhook }: WebhookWithSecret) => ({ ...webhook, made_with: webhookSecrets.madeWith }),
  rehydrate: (stored) => {
    const { made_with: madeWith, ...webhook } = storedSchema.parse(stored);
    return { ...webhook, secret: webhookSecrets.ofAgain(webhook.id, webhook.secret_version, madeWith) };
  },
});

export const listWebhooks = ({ pager, database }: HandlerContext) =>
  ({
    read: async ({ caller, query, now }) => {
      const binding = { list: listEndpoint.id, keyId: caller.keyId, filter: `${caller.orgId}:${caller.mode}` };
      const page = pager.read(query, binding, now);
      const rows = await store.listWebhooks(database.pool, caller, { after: page.after, take: page.limit + 1 });
      return {
        status: 200,
        body: pager.pageOf(rows, page, binding, now, { positionOf: ({ id }) => id, view: store.viewWebhook }),
      };
    },
  }) satisfies ReadHandlers<typeof listEndpoint>;

export const createWebhook = (context: HandlerContext) =>
  ({
    execute: async (tx, { caller, body, now }) => {
      assertUrlAllowed(context, body.url);
      const { orgId, mode } = caller;
      const id = uuidv7();
      const { url, event_types: eventTypes, description } = body;
      const row = await store.insertWebhook(
        tx,
        { id, orgId, mode, url, eventTypes, description, createdAt: now },
        webhooksMax,
      );
      if (row === null) throw problem('webhook_limit');
      await recordAudit(tx, caller, { orgId, action: 'webhook.create', target: pathOf(id), at: now });
      const secret = context.webhookSecrets.of(id, row.generation);
      return { status: 201, headers: { location: pathOf(id) }, body: { ...store.viewWebhook(row), secret } };
    },
    replaySecret: replaySecret(context),
  }) satisfies ExecuteHandlers<typeof endpoints.createWebhook, Tx, void>;

export const getWebhook = ({ database }: HandlerContext) =>
  ({
    read: async ({ caller, params }) => ({
      status: 200,
      body: store.viewWebhook(await requireWebhook(database.pool, caller, params.webhookId)),
    }),
  }) satisfies ReadHandlers<typeof endpoints.getWebhook>;

export const updateWebhook = (context: HandlerContext) =>
  ({
    execute: async (tx, { caller, params, body, now, assertMatch }) => {
      assertUrlAllowed(context, body.url);
      const { url, event_types: eventTypes, description, enabled } = body;
      const held = await holdWebhook(tx, caller, params.webhookId);
      await assertMatch(() => store.viewWebhook(held));
      const isOn = held.disabledAt === null;
      const turned =
        enabled === undefined || enabled === isOn
          ? {}
          : enabled
            ? switchedOn
            : { disabledAt: now, disabledReason: 'customer' };
      const row = await store.changeWebhook(tx, held.id, {
        ...(url === undefined ? {} : { url }),
        ...(eventTypes === undefined ? {} : { eventTypes }),
        ...(description === undefined ? {} : { description }),
        ...turned,
      });
      const sql = context.database.sql(tx);
      if (isOn && row.disabledAt !== null) await holdDeliveries(sql, row.id);
      if (!isOn && row.disabledAt === null) await resumeDeliveries(sql, row.id);
      await recordAudit(tx, caller, { orgId: caller.orgId, action: 'webhook.update', target: pathOf(row.id), at: now });
      return { status: 200, body: store.viewWebhook(row) };
    },
  }) satisfies ExecuteHandlers<typeof endpoints.updateWebhook, Tx, void>;

const switchedOn = { disabledAt: null, disabledReason: null, failingSince: null };

export const deleteWebhook = () =>
  ({
    execute: async (tx, { caller, params, now }) => {
      if (!(await store.removeWebhook(tx, caller, params.webhookId))) throw problem('webhook_not_found');
      await recordAudit(tx, caller, {
        orgId: caller.orgId,
        action: 'webhook.delete',
        target: pathOf(params.webhookId),
        at: now,
      });
      return { status: 204 };
    },
  }) satisfies ExecuteHandlers<typeof endpoints.deleteWebhook, Tx, void>;

/**
 * The grace time after a rotation. Without a grace time, only the new secret signs. Otherwise all secrets that still
 * sign go on until the end of the old or of the new grace time, whichever is later: a receiver may have any of them.
 */
function graceOf(
  { generation, oldestGeneration, previousUntil }: store.WebhookRow,
  { grace_seconds: seconds }: { grace_seconds: number },
  now: Date,
): Pick<store.WebhookRow, 'oldestGeneration' | 'previousUntil'> {
  if (seconds === 0) return { oldestGeneration: null, previousUntil: null };
  const end = new Date(now.getTime() + seconds * 1_000);
  if (previousUntil === null || previousUntil <= now) return { oldestGeneration: generation, previousUntil: end };
  return {
    oldestGeneration: oldestGeneration ?? generation - 1,
    previousUntil: previousUntil > end ? previousUntil : end,
  };
}

export const rotateWebhookSecret = (context: HandlerContext) =>
  ({
    execute: async (tx, { caller, params, body, now }) => {
      const held = await holdWebhook(tx, caller, params.webhookId);
      const { id, generation } = held;
      const row = await store.changeWebhook(tx, id, { generation: generation + 1, ...graceOf(held, body, now) });
      await recordAudit(tx, caller, {
        orgId: caller.orgId,
        action: 'webhook.rotate_secret',
        target: pathOf(id),
        at: now,
      });
      return {
        status: 200,
        body: { ...store.viewWebhook(row), secret: context.webhookSecrets.of(id, row.generation) },
      };
    },
    replaySecret: replaySecret(context),
  }) satisfies ExecuteHandlers<typeof endpoints.rotateWebhookSecret, Tx, void>;

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
  }) satisfies ReadHandlers<typeof endpoints.listWebhookDeliveries>;

export const replayWebhookDelivery = ({ database }: HandlerContext) =>
  ({
    execute: async (tx, { caller, params }) => {
      const webhook = await holdWebhook(tx, caller, params.webhookId);
      if (webhook.disabledAt !== null) throw problem('webhook_disabled');
      const row = await replayRow(database.sql(tx), webhook.id, params.deliveryId);
      if (row === null) throw problem('webhook_delivery_not_found');
      return { status: 200, body: view(row) };
    },
  }) satisfies ExecuteHandlers<typeof endpoints.replayWebhookDelivery, Tx, void>;

/** Records a test event, which is sent only to this webhook. */
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
  }) satisfies ExecuteHandlers<typeof endpoints.testWebhook, Tx, void>;
