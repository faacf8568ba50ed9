import { z } from 'zod';
import { endpoint, type ServiceName } from './endpoint';
import type { Permission } from './permissions';
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

/**
 * The endpoints with which a customer reads how many resources of a kind it may have, and staff change this number.
 * `noun` is part of the endpoints' ids, such as `getSiteQuota` for `Site`. `path` is the path of the list of these
 * resources.
 */
const quotaEndpoints = <const Noun extends string>({
  noun,
  service,
  path,
  view,
}: {
  noun: Noun;
  service: ServiceName;
  path: string;
  /** The permission that a caller needs to read the resources. */
  view: Permission;
}) => {
  const things = `${noun.toLowerCase()}s`;
  const common = { service, response, problems: [], tags: [`${noun}s`] } as const;
  return {
    get: endpoint({
      ...common,
      id: `get${noun}Quota`,
      method: 'GET',
      path: `${path}/quota`,
      summary: `How many ${things} the organisation may have, and how many it has`,
      permissions: [view],
    }),
    set: endpoint({
      ...common,
      id: `set${noun}Quota`,
      method: 'PUT',
      path: `${path}/quota/{orgId}`,
      summary: `Staff: how many ${things} an organisation may have`,
      permissions: ['platform.staff'],
      params: { orgId },
      body,
      example: { limit: 50 },
    }),
  };
};

export const siteQuota = quotaEndpoints({ noun: 'Site', service: 'hosting', path: '/v1/sites', view: 'sites.view' });
export const databaseQuota = quotaEndpoints({
  noun: 'Database',
  service: 'databases',
  path: '/v1/databases',
  view: 'databases.view',
});
export const serverQuota = quotaEndpoints({
  noun: 'Server',
  service: 'compute',
  path: '/v1/compute/servers',
  view: 'sites.view',
});
