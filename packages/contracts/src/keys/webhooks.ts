import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { idSchema, pageOf, pageQuerySchema, text, timestampSchema, uuidSchema } from '../platform/values';
import { eventDays, eventSchema, eventTypeSchema, typesMeant } from './events';

/** The most webhooks that an organisation may have in each mode. */
export const webhooksMax = 20;

const eventTypesSchema = z
  .array(
    z
      .string()
      .refine(
        (name) => name === '*' || (typesMeant(name) !== null && !name.includes(',')),
        'must be an event type, workflow.* or *',
      ),
  )
  .min(1)
  .max(50);

const urlSchema = z
  .string()
  .max(2_000)
  .refine(
    (url) => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol),
    'must be a URL that begins with https://',
  )
  .refine((url) => !URL.canParse(url) || new URL(url).username === '', 'must not hold a user or a password');

export const webhookSchema = z
  .strictObject({
    id: uuidSchema.describe('The webhook.'),
    url: z.string().describe('Where events are sent.'),
    event_types: z
      .array(z.string())
      .describe('The events that are sent: names of types, a beginning such as workflow.*, or * for all.'),
    description: z.string().nullable().describe("The customer's own note."),
    secret_version: z.int().min(1).describe('Counts up with each new secret.'),
    enabled: z
      .boolean()
      .describe(
        'Whether events are sent. False after it was switched off, by a call or because it failed for five days.',
      ),
    disabled_reason: z
      .enum(['customer', 'failures', 'gone'])
      .nullable()
      .describe('gone: it answered 410. Null while it is enabled.'),
    failing_since: timestampSchema
      .nullable()
      .describe('When it began to fail without a success since; null where the last delivery succeeded.'),
    created_at: timestampSchema.describe('When it was created.'),
  })
  .meta({ id: 'Webhook' });
export type Webhook = z.infer<typeof webhookSchema>;

export const webhookWithSecretSchema = webhookSchema
  .extend({ secret: z.string().describe('Signs what is sent (standardwebhooks.com). Shown in this answer only.') })
  .meta({ id: 'WebhookWithSecret' });
export type WebhookWithSecret = z.infer<typeof webhookWithSecretSchema>;

export const webhookDeliverySchema = z
  .strictObject({
    id: uuidSchema.describe('The delivery.'),
    event_id: uuidSchema.describe('The event that is sent; its webhook-id header.'),
    event_type: eventTypeSchema.describe('The type of the event.'),
    resource: z.string().describe('The path of what the event happened to.'),
    status: z
      .enum(['pending', 'delivered', 'failed'])
      .describe('pending: it is sent again until it succeeds. failed: it did not succeed in three days.'),
    attempts: z.int().min(0).describe('How often it was sent.'),
    next_attempt_at: timestampSchema
      .nullable()
      .describe(
        'When it is sent (again); ' +
          'null where it is over, waits for an earlier event of the same resource, or its webhook is off.',
      ),
    last_attempt_at: timestampSchema.nullable().describe('When it was last sent; null before.'),
    last_status: z.int().nullable().describe('HTTP status of the last answer; null without one.'),
    last_error: z.string().nullable().describe('Why the last attempt did not succeed; null where it did, or before.'),
    created_at: timestampSchema.describe('When the event was put in order.'),
  })
  .meta({ id: 'WebhookDelivery' });
export type WebhookDelivery = z.infer<typeof webhookDeliverySchema>;

const tags = ['Webhooks'] as const;
const permissions = ['webhooks.manage'] as const;
const webhookId = { schema: idSchema.describe('The webhook.'), notFound: 'webhook_not_found' } as const;
const deliveryId = { schema: idSchema.describe('The delivery.'), notFound: 'webhook_delivery_not_found' } as const;
const url = urlSchema.describe('Where events are sent: https, on the public internet, without a user or password.');
const description = text(200).nullable().describe("The customer's own note; 1 to 200 characters.");
const eventTypes = eventTypesSchema.describe(
  'The events to send: names of types, a beginning such as workflow.*, or * for all.',
);

export const listWebhooks = endpoint({
  id: 'listWebhooks',
  service: 'keys',
  method: 'GET',
  path: '/v1/webhooks',
  summary: "The organisation's webhooks, newest first",
  permissions,
  query: pageQuerySchema,
  response: { status: 200, schema: pageOf(webhookSchema) },
  problems: [],
  tags,
});

export const createWebhook = endpoint({
  id: 'createWebhook',
  service: 'keys',
  method: 'POST',
  path: '/v1/webhooks',
  summary: 'Have events sent to a URL from now on',
  about: 'The secret is shown in this answer alone.',
  permissions,
  body: z.strictObject({ url, event_types: eventTypes.default(['*']), description: description.default(null) }),
  example: { url: 'https://hooks.example.com/drydock', event_types: ['workflow.*'] },
  response: { status: 201, schema: webhookWithSecretSchema },
  problems: ['webhook_url_refused', 'webhook_limit'],
  tags,
});

export const getWebhook = endpoint({
  id: 'getWebhook',
  service: 'keys',
  method: 'GET',
  path: '/v1/webhooks/{webhookId}',
  summary: 'One webhook',
  permissions,
  params: { webhookId },
  response: { status: 200, schema: webhookSchema },
  problems: [],
  tags,
});

export const updateWebhook = endpoint({
  id: 'updateWebhook',
  service: 'keys',
  method: 'PATCH',
  path: '/v1/webhooks/{webhookId}',
  summary: 'Change it, switch it off, or switch it on again; what waited meanwhile is then sent',
  permissions,
  params: { webhookId },
  body: z.strictObject({
    url: url.optional(),
    event_types: eventTypes.optional(),
    description: description.optional(),
    enabled: z
      .boolean()
      .optional()
      .describe('Whether events are sent. While it is off, new events are not kept for it.'),
  }),
  example: { enabled: false },
  response: { status: 200, schema: webhookSchema },
  problems: ['webhook_url_refused'],
  tags,
});

export const deleteWebhook = endpoint({
  id: 'deleteWebhook',
  service: 'keys',
  method: 'DELETE',
  path: '/v1/webhooks/{webhookId}',
  summary: 'Delete it, with its deliveries',
  about: 'It cannot be undone. What was not delivered yet is not sent; `GET /v1/events` still has it.',
  permissions,
  params: { webhookId },
  response: { status: 204 },
  problems: [],
  tags,
});

export const rotateWebhookSecret = endpoint({
  id: 'rotateWebhookSecret',
  service: 'keys',
  method: 'POST',
  path: '/v1/webhooks/{webhookId}/rotate-secret',
  summary: 'A new secret; for the grace time the old one signs too',
  about: 'The new secret is shown in this answer alone.',
  permissions,
  params: { webhookId },
  body: z.strictObject({
    grace_seconds: z
      .int()
      .min(0)
      .max(604_800)
      .default(86_400)
      .describe(
        'Seconds for which the old secret signs too, at most a week. ' +
          'Earlier secrets that still sign do so at least as long; 0 ends all of them.',
      ),
  }),
  example: { grace_seconds: 3_600 },
  response: { status: 200, schema: webhookWithSecretSchema },
  problems: [],
  tags,
});

export const testWebhook = endpoint({
  id: 'testWebhook',
  service: 'keys',
  method: 'POST',
  path: '/v1/webhooks/{webhookId}/test',
  summary: 'Send it an event of the type webhook.test, whatever its types are',
  permissions,
  params: { webhookId },
  response: { status: 200, schema: eventSchema },
  problems: ['webhook_disabled'],
  tags,
});

export const listWebhookDeliveries = endpoint({
  id: 'listWebhookDeliveries',
  service: 'keys',
  method: 'GET',
  path: '/v1/webhooks/{webhookId}/deliveries',
  summary: `Its deliveries of the last ${eventDays} days, newest first`,
  permissions,
  params: { webhookId },
  query: pageQuerySchema,
  response: { status: 200, schema: pageOf(webhookDeliverySchema) },
  problems: [],
  tags,
});

export const replayWebhookDelivery = endpoint({
  id: 'replayWebhookDelivery',
  service: 'keys',
  method: 'POST',
  path: '/v1/webhooks/{webhookId}/deliveries/{deliveryId}/replay',
  summary: 'Send it again now, with fresh attempts',
  permissions,
  params: { webhookId, deliveryId },
  response: { status: 200, schema: webhookDeliverySchema },
  problems: ['webhook_disabled'],
  tags,
});
