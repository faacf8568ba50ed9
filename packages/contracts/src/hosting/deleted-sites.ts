import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { preflightSchema } from '../platform/preflight';
import { idSchema, pageOf, pageQuerySchema, textFilter, timestampSchema, uuidSchema } from '../platform/values';
import { workflowEndpoints } from '../platform/workflows';
import { restoreQuerySchema } from './backups';

export const deleteReasonSchema = z.enum(['dunning', 'customer', 'staff', 'abuse']);
export type DeleteReason = z.infer<typeof deleteReasonSchema>;

/** The reason why a deleted site cannot be restored; '' if it can. The service checks the reasons in this order. */
export const deletedSiteReasonSchema = z.enum([
  '',
  'already_restored',
  'purged',
  'abuse_hold',
  'no_backup',
  'domain_in_use',
]);
export type DeletedSiteReason = z.infer<typeof deletedSiteReasonSchema>;

/** The deleted site of interface.md 2.5. */
export const deletedSiteSchema = z
  .strictObject({
    id: uuidSchema.describe("The record of the deletion. This is not the site's id."),
    site_id: uuidSchema.describe('The site that it was.'),
    org_id: uuidSchema.describe('The organisation that it belonged to.'),
    primary_domain: z.string().describe('The domain that it was served under.'),
    reason: deleteReasonSchema.describe(
      'Why it was deleted. One that was deleted for abuse is restored by staff only.',
    ),
    deleted_at: timestampSchema.describe('When it was deleted. Its data is kept until it is purged.'),
    deleted_by: z.string().nullable().describe('Id of the key that deleted it; null where no key did.'),
    purge_due_at: timestampSchema
      .nullable()
      .describe('When its last backup is deleted, after which it cannot come back; null where nothing is due.'),
    purged_at: timestampSchema.nullable().describe('When its data was deleted for good; null while it is kept.'),
    restored_at: timestampSchema.nullable().describe('When it was restored; null if never.'),
    restorable: z.boolean().describe('Whether this key could restore it now. Its backup was looked up in the storage.'),
    reason_code: deletedSiteReasonSchema.describe('Why it cannot be restored; empty when it can.'),
  })
  .meta({ id: 'DeletedSite' });
export type DeletedSiteView = z.infer<typeof deletedSiteSchema>;

const deletedSiteId = {
  schema: idSchema.describe("The record of the deletion, which is not the site's id."),
  notFound: 'deleted_site_not_found',
} as const;
const path = '/v1/sites/deleted/{deletedSiteId}';
const tags = ['Deleted sites'] as const;

const deletedSiteListQuery = pageQuerySchema.extend({ text: textFilter('its name or its domain') });
export type DeletedSiteFilter = Omit<z.output<typeof deletedSiteListQuery>, 'cursor' | 'limit'>;

export const listDeletedSites = endpoint({
  id: 'listDeletedSites',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/deleted',
  summary: "The organisation's deleted sites, newest deletion first",
  permissions: ['sites.view'],
  query: deletedSiteListQuery,
  response: { status: 200, schema: pageOf(deletedSiteSchema) },
  problems: [],
  tags,
});

export const getDeletedSite = endpoint({
  id: 'getDeletedSite',
  service: 'hosting',
  method: 'GET',
  path,
  summary: 'One deleted site, and whether it can come back',
  permissions: ['sites.view'],
  params: { deletedSiteId },
  response: { status: 200, schema: deletedSiteSchema },
  problems: [],
  tags,
});

/** Endpoint 6 of interface.md. */
export const restoreDeletedSite = endpoint({
  id: 'restoreDeletedSite',
  service: 'hosting',
  method: 'POST',
  path: `${path}/restore`,
  summary: 'Bring a deleted site back out of its last backup; suspended until it serves',
  about:
    'Its files, its database, its id and its domain come back. ' +
    'A site that does not serve afterwards stays suspended, to be mended. ' +
    'With `contents=files` its database is empty.',
  permissions: ['sites.create', 'sites.view'],
  params: { deletedSiteId },
  query: restoreQuerySchema,
  response: { status: 202, schema: deletedSiteSchema },
  problems: [
    'already_restored',
    'purged',
    'abuse_hold',
    'no_backup',
    'domain_in_use',
    'platform_unavailable',
    'site_database_not_offered',
    'operation_in_progress',
    'needs_attention',
  ],
  tags,
});

export const preflightDeletedSiteRestore = endpoint({
  id: 'preflightDeletedSiteRestore',
  service: 'hosting',
  method: 'POST',
  path: `${path}/restore/preflight`,
  summary: 'What bringing it back would do, and the refusal it would give; changes nothing',
  permissions: ['sites.create', 'sites.view'],
  params: { deletedSiteId },
  query: restoreQuerySchema,
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});

export const deletedSiteWorkflows = workflowEndpoints({
  noun: 'DeletedSite',
  service: 'hosting',
  path,
  params: { deletedSiteId },
  view: 'sites.view',
  listSummary: 'What was and is being done to bring it back, newest first',
  abandonSummary: 'Staff: give up a workflow that needs attention; the record can be restored again',
  tags,
});
