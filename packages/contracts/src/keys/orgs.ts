import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { permissionSchema } from '../platform/permissions';
import { idSchema, pageOf, pageQuerySchema, text, timestampSchema, uuidSchema } from '../platform/values';

export const orgSchema = z
  .strictObject({
    id: uuidSchema.describe('The organisation.'),
    parent_id: uuidSchema.nullable().describe('The organisation above it; null at the top.'),
    name: z.string().describe("The organisation's name."),
    permissions: z.array(permissionSchema).describe('All that a key of it, or of one below it, may ever hold.'),
    created_at: timestampSchema.describe('When it was created.'),
  })
  .meta({ id: 'Org' });
export type Org = z.infer<typeof orgSchema>;

const tags = ['Organisations'] as const;

export const listOrgs = endpoint({
  id: 'listOrgs',
  service: 'keys',
  method: 'GET',
  path: '/v1/orgs',
  summary: "The caller's organisation and all below it",
  permissions: ['orgs.view'],
  query: pageQuerySchema,
  response: { status: 200, schema: pageOf(orgSchema) },
  problems: ['sandbox_key'],
  tags,
});

export const createOrg = endpoint({
  id: 'createOrg',
  service: 'keys',
  method: 'POST',
  path: '/v1/orgs',
  summary: "Create an organisation below the caller's",
  permissions: ['orgs.manage'],
  body: z.strictObject({
    name: text(200).describe('1 to 200 characters, none of them a control character.'),
    parent_id: idSchema.nullable().default(null).meta({ description: "Default: the caller's own organisation" }),
    permissions: z
      .array(permissionSchema)
      .max(100)
      .describe('All that a key of it may ever hold; each must be held by the caller.'),
  }),
  example: { name: 'Reseller', permissions: ['apikeys.manage', 'sites.view'] },
  response: { status: 201, schema: orgSchema },
  problems: ['sandbox_key', 'org_out_of_scope', 'org_permission_not_held'],
  tags,
});

const orgId = { schema: idSchema.describe('The organisation.'), notFound: 'org_not_found' } as const;

export const getOrg = endpoint({
  id: 'getOrg',
  service: 'keys',
  method: 'GET',
  path: '/v1/orgs/{orgId}',
  summary: "The caller's organisation or one below it",
  permissions: ['orgs.view'],
  params: { orgId },
  response: { status: 200, schema: orgSchema },
  problems: ['sandbox_key'],
  tags,
});

export const updateOrg = endpoint({
  id: 'updateOrg',
  service: 'keys',
  method: 'PATCH',
  path: '/v1/orgs/{orgId}',
  summary: 'Change the name or the permissions; a right that is taken away is gone in the whole subtree at once',
  permissions: ['orgs.manage'],
  params: { orgId },
  body: z.strictObject({
    name: text(200).optional().describe('1 to 200 characters, none of them a control character.'),
    permissions: z
      .array(permissionSchema)
      .max(100)
      .optional()
      .describe(
        'The new list, whole. A right that is left out is gone in the whole subtree at once. ' +
          'The caller holds each right that is added or left out; an organisation at the top loses none.',
      ),
  }),
  example: { name: 'Reseller Ltd' },
  response: { status: 200, schema: orgSchema },
  problems: ['sandbox_key', 'scope_not_held', 'org_permission_not_held', 'org_top_loses_permission'],
  tags,
});
