import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { preflightSchema } from '../platform/preflight';
import {
  anyOf,
  createdFilter,
  idSchema,
  metadataChangeSchema,
  metadataFilter,
  metadataSchema,
  pageOf,
  pageQuerySchema,
  sshKeySchema,
  text,
  textFilter,
  timestampSchema,
  uuidSchema,
} from '../platform/values';
import { workflowEndpoints } from '../platform/workflows';

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

/**
 * The payment for a machine (decisions.md 3): in advance by a subscription, or for each started hour. In the sandbox
 * nothing is paid, and `status` is `none`.
 */
export const computeServerBillingSchema = z
  .strictObject({
    mode: z.enum(['term', 'metered']).describe('term is paid ahead by a subscription, metered by the started hour.'),
    currency: z.string().describe('Three letters of ISO 4217.'),
    amount_minor: z.int().min(0).describe("Price of one interval in the currency's smallest unit, such as cents."),
    interval: z.enum(['month', 'hour']).describe('What amount_minor pays for.'),
    subscription_id: z
      .string()
      .nullable()
      .describe('The subscription that pays for a term; null for a metered machine.'),
    term_months: z.int().nullable().describe('Months of the term; null for a metered machine.'),
    started_hours: z.int().nullable().describe('Hours begun so far; null for a machine on a term.'),
    charged_until: timestampSchema
      .nullable()
      .describe('End of the last hour or term that was charged; null before the first charge.'),
    status: z
      .enum(['active', 'past_due', 'cancelled', 'none'])
      .describe('How payment stands. none in the sandbox, where nothing is charged.'),
  })
  .meta({ id: 'ComputeServerBilling' });
export type ComputeServerBilling = z.infer<typeof computeServerBillingSchema>;

/** A server, always in the extended form of interface.md 2.6. */
export const computeServerSchema = z
  .strictObject({
    id: uuidSchema.describe("Also the id of its provisioning workflow, and the machine's name at the provider."),
    name: z.string().describe("The customer's own name for it."),
    deploy_target: z.string().describe('The compute range that it belongs to.'),
    plan_code: z.string().describe('The plan that was bought; empty when ordered by size.'),
    provider: z.string().describe('The provider that runs it.'),
    spec: z.string().describe("The size that the machine has now, in the provider's word."),
    zone: z.string().describe("The data centre, in the provider's word."),
    status: serverStatusSchema.describe('How the order stands.'),
    message: z.string().describe('Why the order failed; empty unless status is failed.'),
    vendor_status: z.string().describe("The provider's own word, as it is. For staff, not for showing to customers."),
    power_state: powerStateSchema.describe('What the machine does now.'),
    addresses: z
      .array(z.string())
      .describe('Public IP addresses. An empty list means that the provider has stated none.'),
    optimisation: z.string().describe('Profile that its software was tuned for; empty for none.'),
    term_months: z.int().nullable().describe('Months of the term that it was bought on; null where there is none.'),
    renews_at: z.null().describe('Always null: no provider publishes a date.'),
    metadata: metadataSchema.describe('Names and values of your own, up to 20; Drydock only keeps them.'),
    created_at: z.string().describe('When it was ordered.'),
    operable: z.boolean().describe('Whether the customer may act on the machine now.'),
    image: z.string().describe("The provider's image that it was built from."),
    suspended: z.boolean().describe('Whether Drydock has stopped it. This is not its power state.'),
    suspension_reason: z.string().describe('Why it is suspended, as staff wrote it; empty in good standing.'),
    capabilities: z.array(z.string()).describe('What its provider can do, such as compute:snapshots.'),
    billing: computeServerBillingSchema.describe('How it is paid for.'),
    login_user: z.string().describe('The account to sign in as over ssh.'),
    blueprint: z
      .enum(['', 'docker', 'k3s', 'k3s_argocd'])
      .describe('Software that was installed at its first boot; empty for none.'),
    cluster_id: z.string().describe('The cluster that it is a node of; empty for none.'),
    cluster_role: z.enum(['', 'server', 'agent']).describe('Its role in that cluster; empty for none.'),
  })
  .meta({ id: 'ComputeServer' });
export type ComputeServerView = z.infer<typeof computeServerSchema>;

/** A name that the installation or the provider has given to a compute range, a plan, a size or a data centre. */
const codeSchema = z
  .string()
  .regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$/, 'must be 1 to 63 letters, digits, dots, underscores or hyphens');
/**
 * The name of an image. A number is refused, because it would be an image's id, and some ids belong to snapshots of
 * other customers.
 */
const imageSchema = z.string().regex(/^[A-Za-z][A-Za-z0-9._-]{0,62}$/, "must be an image's name, such as debian-12");

export const serverId = { schema: idSchema.describe('The server.'), notFound: 'server_not_found' } as const;
const tags = ['Servers'] as const;

const serverListQuery = pageQuerySchema.extend({
  status: anyOf(serverStatusSchema, 'servers of these statuses'),
  text: textFilter('its name'),
  metadata: metadataFilter,
  ...createdFilter,
});
export type ServerFilter = Omit<z.output<typeof serverListQuery>, 'cursor' | 'limit'>;

export const listComputeServers = endpoint({
  id: 'listComputeServers',
  service: 'compute',
  method: 'GET',
  path: '/v1/compute/servers',
  summary: "The organisation's servers, newest first",
  permissions: ['sites.view'],
  query: serverListQuery,
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
  about: 'The provider gets the order once, whatever happens on the way.',
  permissions: ['sites.create'],
  body: z
    .strictObject({
      name: text(200).describe("The customer's own name for it, 1 to 200 characters."),
      deploy_target: codeSchema.describe('A compute range of the installation.'),
      plan_code: codeSchema.optional().describe('A plan of the range. Give either this or spec.'),
      spec: codeSchema.optional().describe('A size of the provider, such as cpx11. Give either this or plan_code.'),
      image: imageSchema.describe('Name of an image of the provider, such as ubuntu-24.04.'),
      zone: codeSchema.describe('A data centre of the provider, such as fsn1.'),
      term_months: z
        .int()
        .min(1)
        .max(60)
        .optional()
        .describe('Buys a term of 1 to 60 months. Left out: charged by the started hour.'),
      ssh_keys: z
        .array(sshKeySchema)
        .min(1)
        .max(10)
        .optional()
        .describe(
          'Up to 10 public keys of OpenSSH that may sign in as login_user. Left out: nobody can sign in at a ' +
            'provider that gives the machine a random password.',
        ),
      metadata: metadataChangeSchema
        .optional()
        .describe('Up to 20 names of up to 40 characters, each with a value of up to 500.'),
    })
    .refine((order) => (order.plan_code === undefined) !== (order.spec === undefined), {
      path: ['plan_code'],
      message: 'give either plan_code or spec',
    }),
  example: { name: 'Web', deploy_target: 'fsn', spec: 'cpx11', image: 'ubuntu-24.04', zone: 'fsn1' },
  response: { status: 202, schema: computeServerSchema },
  problems: ['quota_exceeded', 'deploy_target_unknown', 'size_not_offered', 'ssh_keys_unsupported'],
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

export const updateComputeServer = endpoint({
  id: 'updateComputeServer',
  service: 'compute',
  method: 'PATCH',
  path: '/v1/compute/servers/{serverId}',
  summary: 'Change the name of a server, or what you keep with it; also while work is done to it',
  permissions: ['sites.view', 'sites.create'],
  params: { serverId },
  body: z
    .strictObject({
      name: text(200).describe("The customer's own name for it, 1 to 200 characters."),
      metadata: metadataChangeSchema.describe(
        'Values to set; null or an empty one removes its name. What is not named stays. Up to 20 in all.',
      ),
    })
    .partial(),
  example: { name: 'Web', metadata: { contract: 'C-1041' } },
  response: { status: 200, schema: computeServerSchema },
  problems: [],
  tags,
});

const powerBody = z.strictObject({
  force: z
    .boolean()
    .optional()
    .describe(
      'true cuts the power, as pulling the plug does: what the guest has not written is lost. ' +
        'Left out: the guest is asked to shut down.',
    ),
});
const powerPermissions = ['sites.view', 'compute.power.manage'] as const;
const powerProblems = ['operation_in_progress', 'needs_attention', 'server_not_operable'] as const;

export const powerOnComputeServer = endpoint({
  id: 'powerOnComputeServer',
  service: 'compute',
  method: 'POST',
  path: '/v1/compute/servers/{serverId}/power-on',
  summary: 'Power the server on; one that is on stays as it is',
  permissions: powerPermissions,
  params: { serverId },
  response: { status: 202, schema: computeServerSchema },
  problems: powerProblems,
  tags,
});

export const powerOffComputeServer = endpoint({
  id: 'powerOffComputeServer',
  service: 'compute',
  method: 'POST',
  path: '/v1/compute/servers/{serverId}/power-off',
  summary: 'Have the guest shut down, or cut the power; one that is off stays as it is, and is paid for all the same',
  permissions: powerPermissions,
  params: { serverId },
  body: powerBody,
  example: {},
  response: { status: 202, schema: computeServerSchema },
  problems: powerProblems,
  tags,
});

export const rebootComputeServer = endpoint({
  id: 'rebootComputeServer',
  service: 'compute',
  method: 'POST',
  path: '/v1/compute/servers/{serverId}/reboot',
  summary: 'Have the guest restart, or cut the power and give it back',
  permissions: powerPermissions,
  params: { serverId },
  body: powerBody,
  example: {},
  response: { status: 202, schema: computeServerSchema },
  problems: [...powerProblems, 'server_not_running'],
  tags,
});

export const preflightComputeServerPowerOn = endpoint({
  id: 'preflightComputeServerPowerOn',
  service: 'compute',
  method: 'POST',
  path: '/v1/compute/servers/{serverId}/power-on/preflight',
  summary: 'What powering the server on would do, and the refusal it would give; changes nothing',
  permissions: powerPermissions,
  params: { serverId },
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});

export const preflightComputeServerPowerOff = endpoint({
  id: 'preflightComputeServerPowerOff',
  service: 'compute',
  method: 'POST',
  path: '/v1/compute/servers/{serverId}/power-off/preflight',
  summary: 'What powering the server off would stop or lose, and the refusal it would give; changes nothing',
  permissions: powerPermissions,
  params: { serverId },
  body: powerBody,
  example: { force: true },
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});

export const preflightComputeServerReboot = endpoint({
  id: 'preflightComputeServerReboot',
  service: 'compute',
  method: 'POST',
  path: '/v1/compute/servers/{serverId}/reboot/preflight',
  summary: 'What a restart of the server would interrupt or lose, and the refusal it would give; changes nothing',
  permissions: powerPermissions,
  params: { serverId },
  body: powerBody,
  example: { force: true },
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});

const deletionPermissions = ['sites.view', 'sites.delete'] as const;

export const deleteComputeServer = endpoint({
  id: 'deleteComputeServer',
  service: 'compute',
  method: 'DELETE',
  path: '/v1/compute/servers/{serverId}',
  summary: 'Delete the server with its disk, its addresses and all of its snapshots; there is no undo',
  permissions: deletionPermissions,
  params: { serverId },
  response: { status: 202, schema: computeServerSchema },
  problems: [
    'operation_in_progress',
    'needs_attention',
    'server_not_operable',
    'server_protected',
    'snapshot_protected',
  ],
  tags,
});

export const preflightComputeServerDeletion = endpoint({
  id: 'preflightComputeServerDeletion',
  service: 'compute',
  method: 'POST',
  path: '/v1/compute/servers/{serverId}/deletion/preflight',
  summary: 'What a deletion would take with it, and the refusal it would give; changes nothing',
  permissions: deletionPermissions,
  params: { serverId },
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});

const rebuildPermissions = ['sites.view', 'sites.delete'] as const;
const rebuildBody = z.strictObject({
  image: imageSchema.describe('Name of an image of the provider, such as debian-12.'),
});

export const rebuildComputeServer = endpoint({
  id: 'rebuildComputeServer',
  service: 'compute',
  method: 'POST',
  path: '/v1/compute/servers/{serverId}/rebuild',
  summary: 'Overwrite the disk with an image of the provider; there is no undo',
  permissions: rebuildPermissions,
  params: { serverId },
  body: rebuildBody,
  example: { image: 'debian-12' },
  response: { status: 202, schema: computeServerSchema },
  problems: [
    'operation_in_progress',
    'needs_attention',
    'server_not_operable',
    'rebuild_unsupported',
    'rebuild_protected',
  ],
  tags,
});

export const preflightComputeServerRebuild = endpoint({
  id: 'preflightComputeServerRebuild',
  service: 'compute',
  method: 'POST',
  path: '/v1/compute/servers/{serverId}/rebuild/preflight',
  summary: 'What a rebuild would overwrite, and the refusal it would give; changes nothing',
  permissions: rebuildPermissions,
  params: { serverId },
  body: rebuildBody,
  example: { image: 'debian-12' },
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});

export const serverWorkflows = workflowEndpoints({
  noun: 'Server',
  service: 'compute',
  path: '/v1/compute/servers/{serverId}',
  params: { serverId },
  view: 'sites.view',
  listSummary: 'What was and is being done to the server, newest first',
  abandonSummary: 'Staff: give up a workflow that needs attention, leave the server as it is and unlock it',
});
