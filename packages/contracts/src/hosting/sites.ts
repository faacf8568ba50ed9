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
  storageStateSchema,
  text,
  textFilter,
  timestampSchema,
  uuidSchema,
} from '../platform/values';
import { acceptedWork, workflowEndpoints } from '../platform/workflows';

export const siteStatusSchema = z.enum(['provisioning', 'active', 'suspended', 'restoring', 'failed', 'deleting']);
export type SiteStatus = z.infer<typeof siteStatusSchema>;
export const sitePlatformSchema = z.enum(['local', 'ssh', 'vendor']);
export type SitePlatform = z.infer<typeof sitePlatformSchema>;
export const siteDatabaseSchema = z.enum(['postgres', 'mysql']);
export type SiteDatabase = z.infer<typeof siteDatabaseSchema>;

/**
 * The most days for which a plan keeps backups. A higher number is accepted and counts as 90 (interface.md 8.2).
 */
export const retentionDaysMax = 90;

const planSchema = z
  .strictObject({
    daily_backups: z.boolean().describe('Whether a backup is taken every night.'),
    backup_retention_days: z
      .int()
      .min(1)
      .max(3650)
      .describe('Days for which backups are kept; more than 90 counts as 90.'),
  })
  .meta({ id: 'SitePlan' });

export const siteSchema = z
  .strictObject({
    id: uuidSchema.describe('The site.'),
    org_id: uuidSchema.describe('The organisation that it belongs to.'),
    name: z.string().describe("The customer's own name for it."),
    primary_domain: z.string().describe('The domain that it is served under.'),
    platform: sitePlatformSchema.describe(
      "What serves it: a host of Drydock's own, a host over ssh, or a vendor's panel.",
    ),
    database: siteDatabaseSchema
      .nullable()
      .describe(
        'Which database it has; mysql is a MariaDB. null on the platforms ssh and vendor: ' +
          'there it has what they give it.',
      ),
    status: siteStatusSchema.describe('How the site stands. restoring is being overwritten.'),
    url: z.string().describe('Where it is served now.'),
    plan: planSchema.describe('What its plan includes.'),
    metadata: metadataSchema.describe('Names and values of your own, up to 20; Drydock only keeps them.'),
    created_at: timestampSchema.describe('When it was created.'),
  })
  .meta({ id: 'Site' });
export type SiteView = z.infer<typeof siteSchema>;

export const acceptedSiteSchema = siteSchema.extend(acceptedWork).meta({ id: 'AcceptedSite' });

/** A host name with at least two labels, in lower case. As in DNS, it has at most 253 characters. */
const domainSchema = z
  .string()
  .max(253)
  .transform((domain) => domain.toLowerCase())
  .pipe(
    z
      .string()
      .regex(
        /^(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?$/,
        'must be a host name of two labels or more, such as shop.example.com',
      ),
  );

export const siteId = { schema: idSchema.describe('The site.'), notFound: 'site_not_found' } as const;
const tags = ['Sites'] as const;

const siteListQuery = pageQuerySchema.extend({
  status: anyOf(siteStatusSchema, 'sites of these statuses'),
  storage: anyOf(storageStateSchema, 'sites whose storage, as recorded once a minute, is in one of these states'),
  text: textFilter('its name or its domain'),
  metadata: metadataFilter,
  ...createdFilter,
});
export type SiteFilter = Omit<z.output<typeof siteListQuery>, 'cursor' | 'limit'>;

export const listSites = endpoint({
  id: 'listSites',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites',
  summary: "The organisation's sites, newest first",
  permissions: ['sites.view'],
  query: siteListQuery,
  response: { status: 200, schema: pageOf(siteSchema) },
  problems: [],
  tags,
});

export const createSite = endpoint({
  id: 'createSite',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites',
  summary: 'Create a site; it is provisioning until its host serves it',
  permissions: ['sites.create'],
  body: z.strictObject({
    name: text(200).describe("The customer's own name for it, 1 to 200 characters."),
    primary_domain: domainSchema.describe(
      'A host name of two labels or more, up to 253 characters; stored in lower case.',
    ),
    platform: sitePlatformSchema.default('local').describe('What serves it.'),
    database: siteDatabaseSchema
      .optional()
      .describe(
        'Which database it gets, for good: postgres, which it gets without being asked, or mysql, ' +
          'a MariaDB where its host has the programs. ' +
          'Only on platform local.',
      ),
    plan: planSchema.default({ daily_backups: true, backup_retention_days: 30 }).describe('What its plan includes.'),
    metadata: metadataChangeSchema
      .optional()
      .describe('Up to 20 names of up to 40 characters, each with a value of up to 500.'),
  }),
  example: {
    name: 'Shop',
    primary_domain: 'shop.example.com',
    plan: { daily_backups: true, backup_retention_days: 30 },
  },
  response: { status: 202, schema: acceptedSiteSchema },
  problems: [
    'quota_exceeded',
    'domain_in_use',
    'domain_not_proven',
    'platform_unavailable',
    'site_database_not_offered',
  ],
  tags,
});

export const getSite = endpoint({
  id: 'getSite',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}',
  summary: 'One site',
  permissions: ['sites.view'],
  params: { siteId },
  response: { status: 200, schema: siteSchema },
  problems: [],
  tags,
});

const countedStorageSchema = z
  .strictObject({
    state: storageStateSchema.describe(
      'nearly_full from nine tenths on. full: the application is ended, or the database takes no more, until some is ' +
        'removed. closed, more than a fifth over: the database gets no sessions.',
    ),
    used_bytes: z.int().min(0).describe('What it takes on disk, in bytes.'),
    counted_at: timestampSchema.describe('When it was counted.'),
  })
  .meta({ id: 'CountedStorage' });

export const siteStorageSchema = z
  .strictObject({
    limit_bytes: z
      .int()
      .min(0)
      .nullable()
      .describe('What the files may take, and the database as much again, in bytes; null where nothing is counted.'),
    files: countedStorageSchema.nullable().describe('The files; null where they have not been counted.'),
    database: countedStorageSchema.nullable().describe('The database; null where it has not been counted.'),
  })
  .meta({ id: 'SiteStorage' });
export type SiteStorage = z.infer<typeof siteStorageSchema>;

export const getSiteStorage = endpoint({
  id: 'getSiteStorage',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}/storage',
  summary: 'How full a site of platform local is, as last counted; on other platforms nothing is counted',
  permissions: ['sites.view'],
  params: { siteId },
  response: { status: 200, schema: siteStorageSchema },
  problems: [],
  tags,
});

export const updateSite = endpoint({
  id: 'updateSite',
  service: 'hosting',
  method: 'PATCH',
  path: '/v1/sites/{siteId}',
  summary: 'Change the name of a site, or what you keep with it; also while work is done to it',
  permissions: ['sites.view', 'sites.create'],
  params: { siteId },
  body: z
    .strictObject({
      name: text(200).describe("The customer's own name for it, 1 to 200 characters."),
      metadata: metadataChangeSchema.describe(
        'Values to set; null or an empty one removes its name. What is not named stays. Up to 20 in all.',
      ),
    })
    .partial(),
  example: { name: 'Shop', metadata: { contract: 'C-1041' } },
  response: { status: 200, schema: siteSchema },
  problems: [],
  tags,
});

const deletionPermissions = ['sites.view', 'sites.delete'] as const;
const deletionQuery = z.strictObject({
  last_backup: z.enum(['required', 'none']).default('required').meta({
    description: 'none: the state that is deleted is lost; the site can come back from the newest backup that it has',
  }),
});

export const deleteSite = endpoint({
  id: 'deleteSite',
  service: 'hosting',
  method: 'DELETE',
  path: '/v1/sites/{siteId}',
  summary:
    'Delete a site after a last backup of it was taken; with last_backup=none without one, ' +
    'also where none can be taken',
  about:
    'A last backup is taken and verified before anything is removed. ' +
    'The site then stands among the deleted sites, from where it comes back until ' +
    'its record is purged. With `last_backup=none` it comes back from its newest earlier backup, or not at all.',
  permissions: deletionPermissions,
  params: { siteId },
  query: deletionQuery,
  response: { status: 202, schema: acceptedSiteSchema },
  problems: ['operation_in_progress', 'needs_attention'],
  tags,
});

export const preflightSiteDeletion = endpoint({
  id: 'preflightSiteDeletion',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/deletion/preflight',
  summary:
    'What a deletion would remove and what would be left to come back from, ' +
    'and the refusal it would give; changes nothing',
  permissions: deletionPermissions,
  params: { siteId },
  query: deletionQuery,
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});

export const siteWorkflows = workflowEndpoints({
  noun: 'Site',
  service: 'hosting',
  path: '/v1/sites/{siteId}',
  params: { siteId },
  view: 'sites.view',
  listSummary: 'What was and is being done to the site, newest first',
  abandonSummary: 'Staff: give up a workflow that needs attention, leave the resource as it is and unlock it',
});
