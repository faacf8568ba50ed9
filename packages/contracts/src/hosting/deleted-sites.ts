import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { preflightSchema } from '../platform/preflight';
import { idSchema, pageOf, pageQuerySchema, timestampSchema, uuidSchema } from '../platform/values';
import { workflowSchema } from '../platform/workflows';

export const deleteReasonSchema = z.enum(['dunning', 'customer', 'staff', 'abuse']);
export type DeleteReason = z.infer<typeof deleteReasonSchema>;

/** Why a deleted site cannot come back, in the order in which it is asked; '' when it can. */
export const deletedSiteReasonSchema = z.enum(['', 'already_restored', 'purged', 'abuse_hold', 'no_backup', 'domain_in_use']);
export type DeletedSiteReason = z.infer<typeof deletedSiteReasonSchema>;

/** interface.md 2.5 */
export const deletedSiteSchema = z
  .strictObject({
    id: uuidSchema,
    site_id: uuidSchema,
    org_id: uuidSchema,
    primary_domain: z.string(),
    reason: deleteReasonSchema,
    deleted_at: timestampSchema,
    deleted_by: z.string().nullable(),
    purge_due_at: timestampSchema.nullable(),
    purged_at: timestampSchema.nullable(),
    restored_at: timestampSchema.nullable(),
    /** For the key that asks: abuse_hold does not keep staff from it. */
    restorable: z.boolean(),
    reason_code: deletedSiteReasonSchema,
  })
  .meta({ id: 'DeletedSite' });
export type DeletedSiteView = z.infer<typeof deletedSiteSchema>;

const deletedSiteId = { schema: idSchema, notFound: 'deleted_site_not_found' } as const;
const workflowId = { schema: idSchema, notFound: 'workflow_not_found' } as const;
const path = '/v1/sites/deleted/{deletedSiteId}';
const tags = ['Deleted sites'] as const;

export const listDeletedSites = endpoint({
  id: 'listDeletedSites',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/deleted',
  summary: "The organisation's deleted sites, newest deletion first",
  permissions: ['sites.view'],
  query: pageQuerySchema,
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

/** Endpoint 6. */
export const restoreDeletedSite = endpoint({
  id: 'restoreDeletedSite',
  service: 'hosting',
  method: 'POST',
  path: `${path}/restore`,
  summary: 'Bring a deleted site back out of its last backup; suspended until it serves',
  permissions: ['sites.create', 'sites.view'],
  params: { deletedSiteId },
  response: { status: 202, schema: deletedSiteSchema },
  problems: [
    'already_restored',
    'purged',
    'abuse_hold',
    'no_backup',
    'domain_in_use',
    'platform_unavailable',
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
  response: { status: 200, schema: preflightSchema },
  problems: [],
  tags,
});

export const listDeletedSiteWorkflows = endpoint({
  id: 'listDeletedSiteWorkflows',
  service: 'hosting',
  method: 'GET',
  path: `${path}/workflows`,
  summary: 'What was and is being done to bring it back, newest first',
  permissions: ['sites.view'],
  params: { deletedSiteId },
  query: pageQuerySchema,
  response: { status: 200, schema: pageOf(workflowSchema) },
  problems: [],
  tags,
});

export const getDeletedSiteWorkflow = endpoint({
  id: 'getDeletedSiteWorkflow',
  service: 'hosting',
  method: 'GET',
  path: `${path}/workflows/{workflowId}`,
  summary: 'One workflow with its steps',
  permissions: ['sites.view'],
  params: { deletedSiteId, workflowId },
  response: { status: 200, schema: workflowSchema },
  problems: [],
  tags,
});

export const watchDeletedSiteWorkflow = endpoint({
  id: 'watchDeletedSiteWorkflow',
  service: 'hosting',
  method: 'GET',
  path: `${path}/workflows/{workflowId}/events`,
  summary: 'Its changes as server-sent events; ends with it or after 60 s, resumes by Last-Event-ID',
  permissions: ['sites.view'],
  params: { deletedSiteId, workflowId },
  response: { status: 200, schema: z.string(), contentType: 'text/event-stream' },
  problems: [],
  tags,
});

export const retryDeletedSiteWorkflow = endpoint({
  id: 'retryDeletedSiteWorkflow',
  service: 'hosting',
  method: 'POST',
  path: `${path}/workflows/{workflowId}/retry`,
  summary: 'Staff: go on with a workflow that needs attention',
  permissions: ['platform.staff'],
  params: { deletedSiteId, workflowId },
  response: { status: 202, schema: workflowSchema },
  problems: ['workflow_not_waiting'],
  tags,
});

export const abandonDeletedSiteWorkflow = endpoint({
  id: 'abandonDeletedSiteWorkflow',
  service: 'hosting',
  method: 'POST',
  path: `${path}/workflows/{workflowId}/abandon`,
  summary: 'Staff: give up a workflow that needs attention; the record can be restored again',
  permissions: ['platform.staff'],
  params: { deletedSiteId, workflowId },
  response: { status: 202, schema: workflowSchema },
  problems: ['workflow_not_waiting'],
  tags,
});
