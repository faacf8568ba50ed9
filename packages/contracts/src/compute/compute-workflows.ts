import { endpoint } from '../platform/endpoint';
import { idSchema, pageOf } from '../platform/values';
import { nothingWaits, workflowListQuery, workflowSchema } from '../platform/workflows';
import { serverId } from './compute-servers';

const workflowId = { schema: idSchema.describe('The workflow.'), notFound: 'workflow_not_found' } as const;
const tags = ['Workflows'] as const;

export const listServerWorkflows = endpoint({
  id: 'listServerWorkflows',
  service: 'compute',
  method: 'GET',
  path: '/v1/compute/servers/{serverId}/workflows',
  summary: 'What was and is being done to the server, newest first',
  permissions: ['sites.view'],
  params: { serverId },
  query: workflowListQuery,
  response: { status: 200, schema: pageOf(workflowSchema) },
  problems: [],
  tags,
});

export const getServerWorkflow = endpoint({
  id: 'getServerWorkflow',
  service: 'compute',
  method: 'GET',
  path: '/v1/compute/servers/{serverId}/workflows/{workflowId}',
  summary: 'One workflow with its steps',
  permissions: ['sites.view'],
  params: { serverId, workflowId },
  response: { status: 200, schema: workflowSchema },
  problems: [],
  tags,
});

export const watchServerWorkflow = endpoint({
  id: 'watchServerWorkflow',
  service: 'compute',
  method: 'GET',
  path: '/v1/compute/servers/{serverId}/workflows/{workflowId}/events',
  summary: 'Its changes as server-sent events; ends with it or after 60 s, resumes by Last-Event-ID',
  permissions: ['sites.view'],
  params: { serverId, workflowId },
  response: {
    status: 200,
    schema: workflowSchema,
    contentType: 'text/event-stream',
    eventLines: 'id: 5\nevent: workflow',
  },
  problems: [],
  tags,
});

export const retryServerWorkflow = endpoint({
  id: 'retryServerWorkflow',
  service: 'compute',
  method: 'POST',
  path: '/v1/compute/servers/{serverId}/workflows/{workflowId}/retry',
  summary: 'Staff: go on with a workflow that needs attention',
  permissions: ['platform.staff'],
  params: { serverId, workflowId },
  response: { status: 202, schema: workflowSchema },
  problems: ['workflow_not_waiting'],
  inDemo: nothingWaits,
  tags,
});

export const abandonServerWorkflow = endpoint({
  id: 'abandonServerWorkflow',
  service: 'compute',
  method: 'POST',
  path: '/v1/compute/servers/{serverId}/workflows/{workflowId}/abandon',
  summary: 'Staff: give up a workflow that needs attention, leave the server as it is and unlock it',
  permissions: ['platform.staff'],
  params: { serverId, workflowId },
  response: { status: 202, schema: workflowSchema },
  problems: ['workflow_not_waiting'],
  inDemo: nothingWaits,
  tags,
});
