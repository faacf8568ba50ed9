import { z } from 'zod';
import { endpoint } from './endpoint';
import { idSchema, uuidSchema } from './values';

/**
 * The number of resources that an organisation may have in its mode, and the number that it has. Failed and deleted
 * resources do not count.
 */
export const quotaSchema = z
  .strictObject({
    org_id: uuidSchema.describe('The organisation.'),
    limit: z.int().min(0).describe('How many it may have in this mode.'),
    used: z.int().min(0).describe('How many it has. What failed or was deleted does not count.'),
  })
  .meta({ id: 'Quota' });
export type Quota = z.infer<typeof quotaSchema>;

const body = z.strictObject({
  limit: z.int().min(0).max(1_000_000).nullable().meta({ description: 'Null: what every organisation may have' }),
});
const response = { status: 200, schema: quotaSchema } as const;
const orgId = { schema: idSchema.describe('The organisation.'), notFound: 'org_not_found', isAnybodys: true } as const;

export const getSiteQuota = endpoint({
  id: 'getSiteQuota',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/quota',
  summary: 'How many sites the organisation may have, and how many it has',
  permissions: ['sites.view'],
  response,
  problems: [],
  tags: ['Sites'],
});

export const setSiteQuota = endpoint({
  id: 'setSiteQuota',
  service: 'hosting',
  method: 'PUT',
  path: '/v1/sites/quota/{orgId}',
  summary: 'Staff: how many sites an organisation may have',
  permissions: ['platform.staff'],
  params: { orgId },
  body,
  example: { limit: 50 },
  response,
  problems: [],
  tags: ['Sites'],
});

export const getDatabaseQuota = endpoint({
  id: 'getDatabaseQuota',
  service: 'databases',
  method: 'GET',
  path: '/v1/databases/quota',
  summary: 'How many databases the organisation may have, and how many it has',
  permissions: ['databases.view'],
  response,
  problems: [],
  tags: ['Databases'],
});

export const setDatabaseQuota = endpoint({
  id: 'setDatabaseQuota',
  service: 'databases',
  method: 'PUT',
  path: '/v1/databases/quota/{orgId}',
  summary: 'Staff: how many databases an organisation may have',
  permissions: ['platform.staff'],
  params: { orgId },
  body,
  example: { limit: 50 },
  response,
  problems: [],
  tags: ['Databases'],
});

export const getServerQuota = endpoint({
  id: 'getServerQuota',
  service: 'compute',
  method: 'GET',
  path: '/v1/compute/servers/quota',
  summary: 'How many servers the organisation may have, and how many it has',
  permissions: ['sites.view'],
  response,
  problems: [],
  tags: ['Servers'],
});

export const setServerQuota = endpoint({
  id: 'setServerQuota',
  service: 'compute',
  method: 'PUT',
  path: '/v1/compute/servers/quota/{orgId}',
  summary: 'Staff: how many servers an organisation may have',
  permissions: ['platform.staff'],
  params: { orgId },
  body,
  example: { limit: 50 },
  response,
  problems: [],
  tags: ['Servers'],
});
