import { endpoint } from '../platform/endpoint';
import { idSchema, pageOf } from '../platform/values';
import { nothingWaits, workflowListQuery, workflowSchema } from '../platform/workflows';
import { siteId } from './sites';

const workflowId = { schema: idSchema.describe('The workflow.'), notFound: 'workflow_not_found' } as const;
const tags = ['Workflows'] as const;

export const listSiteWorkflows = endpoint({
  id: 'listSiteWorkflows',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}/workflows',
  summary: 'What was and is being done to the site, newest first',
  permissions: ['sites.view'],
  params: { siteId },
  query: workflowListQuery,
  response: { status: 200, schema: pageOf(workflowSchema) },
  problems: [],
  tags,
});

export const getSiteWorkflow = endpoint({
  id: 'getSiteWorkflow',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}/workflows/{workflowId}',
  summary: 'One workflow with its steps',
  permissions: ['sites.view'],
  params: { siteId, workflowId },
  response: { status: 200, schema: workflowSchema },
  problems: [],
  tags,
});

export const watchSiteWorkflow = endpoint({
  id: 'watchSiteWorkflow',
  service: 'hosting',
  method: 'GET',
  path: '/v1/sites/{siteId}/workflows/{workflowId}/events',
  summary: 'Its changes as server-sent events; ends with it or after 60 s, resumes by Last-Event-ID',
  permissions: ['sites.view'],
  params: { siteId, workflowId },
  response: {
    status: 200,
    schema: workflowSchema,
    contentType: 'text/event-stream',
    eventLines: 'id: 5\nevent: workflow',
  },
  problems: [],
  tags,
});

export const retrySiteWorkflow = endpoint({
  id: 'retrySiteWorkflow',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/workflows/{workflowId}/retry',
  summary: 'Staff: go on with a workflow that needs attention',
  permissions: ['platform.staff'],
  params: { siteId, workflowId },
  response: { status: 202, schema: workflowSchema },
  problems: ['workflow_not_waiting'],
  inDemo: nothingWaits,
  tags,
});

export const abandonSiteWorkflow = endpoint({
  id: 'abandonSiteWorkflow',
  service: 'hosting',
  method: 'POST',
  path: '/v1/sites/{siteId}/workflows/{workflowId}/abandon',
  summary: 'Staff: give up a workflow that needs attention, leave the resource as it is and unlock it',
  permissions: ['platform.staff'],
  params: { siteId, workflowId },
  response: { status: 202, schema: workflowSchema },
  problems: ['workflow_not_waiting'],
  inDemo: nothingWaits,
  tags,
});
