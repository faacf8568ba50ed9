import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { idSchema, pageOf, pageQuerySchema, text, timestampSchema, uuidSchema } from '../platform/values';

export const serverStatusSchema = z.enum([
  'pending',
  'provisioning',
  'active',
  'failed',
  'suspended',
  'resizing',
  'terminating',
  'terminated',
]);
export type ServerStatus = z.infer<typeof serverStatusSchema>;
export const powerStateSchema = z.enum(['unknown', 'on', 'off', 'starting', 'stopping', 'rebooting']);
export type ServerPowerState = z.infer<typeof powerStateSchema>;

/** How the machine is paid for (decisions.md 3): ahead by a subscription, or per started hour. In the sandbox nothing is: `status` is none. */
export const computeServerBillingSchema = z
  .strictObject({
    mode: z.enum(['term', 'metered']),
    currency: z.string(),
    amount_minor: z.int().min(0),
    interval: z.enum(['month', 'hour']),
    subscription_id: z.string().nullable(),
    term_months: z.int().nullable(),
    started_hours: z.int().nullable(),
    charged_until: timestampSchema.nullable(),
    status: z.enum(['active', 'past_due', 'cancelled', 'none']),
  })
  .meta({ id: 'ComputeServerBilling' });
export type ComputeServerBilling = z.infer<typeof computeServerBillingSchema>;

/** interface.md 2.6, in its extended form everywhere */
export const computeServerSchema = z
  .strictObject({
    /** Also its provisioning workflow's id, and the machine's name at the provider. */
    id: uuidSchema,
    name: z.string(),
    deploy_target: z.string(),
    plan_code: z.string(),
    provider: z.string(),
    spec: z.string(),
    zone: z.string(),
    status: serverStatusSchema,
    message: z.string(),
    vendor_status: z.string(),
    power_state: powerStateSchema,
    addresses: z.array(z.string()),
    optimisation: z.string(),
    term_months: z.int().nullable(),
    renews_at: z.null(),
    created_at: z.string(),
    operable: z.boolean(),
    image: z.string(),
    suspended: z.boolean(),
    suspension_reason: z.string(),
    capabilities: z.array(z.string()),
    billing: computeServerBillingSchema,
    login_user: z.string(),
    blueprint: z.enum(['', 'docker', 'k3s', 'k3s_argocd']),
    cluster_id: z.string(),
    cluster_role: z.enum(['', 'server', 'agent']),
  })
  .meta({ id: 'ComputeServer' });
export type ComputeServerView = z.infer<typeof computeServerSchema>;

/** A word of the installation or of the provider: a range, a size, a place. */
const codeSchema = z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/);
/** By name. A number would be an image's id, and some of those are other customers' snapshots. */
const imageSchema = z.string().regex(/^[A-Za-z][A-Za-z0-9._-]{0,62}$/);

export const serverId = { schema: idSchema, notFound: 'server_not_found' } as const;
const tags = ['Servers'] as const;

export const listComputeServers = endpoint({
  id: 'listComputeServers',
  service: 'compute',
  method: 'GET',
  path: '/v1/compute/servers',
  summary: "The organisation's servers, newest first",
  permissions: ['sites.view'],
  query: pageQuerySchema,
  response: { status: 200, schema: pageOf(computeServerSchema) },
  problems: [],
  tags,
});

export const orderComputeServer = endpoint({
  id: 'orderComputeServer',
  service: 'compute',
  method: 'POST',
  path: '/v1/compute/servers',
  summary: 'Order a server by plan or by size; it is provisioning until its machine runs',
  permissions: ['sites.create'],
  body: z
    .strictObject({
      name: text(200),
      deploy_target: codeSchema,
      plan_code: codeSchema.optional(),
      spec: codeSchema.optional(),
      image: imageSchema,
      zone: codeSchema,
      term_months: z.int().min(1).max(60).optional(),
    })
    .refine((order) => (order.plan_code === undefined) !== (order.spec === undefined), {
      path: ['plan_code'],
      message: 'give either plan_code or spec',
    }),
  example: { name: 'Web', deploy_target: 'fsn', spec: 'cpx11', image: 'ubuntu-24.04', zone: 'fsn1' },
  response: { status: 202, schema: computeServerSchema },
  problems: ['deploy_target_unknown', 'size_not_offered'],
  tags,
});

export const getComputeServer = endpoint({
  id: 'getComputeServer',
  service: 'compute',
  method: 'GET',
  path: '/v1/compute/servers/{serverId}',
  summary: 'One server',
  permissions: ['sites.view'],
  params: { serverId },
  response: { status: 200, schema: computeServerSchema },
  problems: [],
  tags,
});

/** Destructive: what is on the disk is gone. */
export const rebuildComputeServer = endpoint({
  id: 'rebuildComputeServer',
  service: 'compute',
  method: 'POST',
  path: '/v1/compute/servers/{serverId}/rebuild',
  summary: 'Overwrite the disk with an image of the provider; there is no undo',
  permissions: ['sites.view', 'sites.delete'],
  params: { serverId },
  body: z.strictObject({ image: imageSchema }),
  example: { image: 'debian-12' },
  response: { status: 202, schema: computeServerSchema },
  problems: ['operation_in_progress', 'needs_attention', 'server_not_operable', 'rebuild_unsupported', 'rebuild_protected'],
  tags,
});
