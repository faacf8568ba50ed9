import { endpoint } from '../platform/endpoint';
import { idSchema, pageOf } from '../platform/values';
import { nothingWaits, workflowListQuery, workflowSchema } from '../platform/workflows';
import { databaseId } from './databases';

const workflowId = { schema: idSchema.describe('The workflow.'), notFound: 'workflow_not_found' } as const;
const tags = ['Workflows'] as const;

export const listDatabaseWorkflows = endpoint({
  id: 'listDatabaseWorkflows',
  service: 'databases',
  method: 'GET',
  path: '/v1/databases/{databaseId}/workflows',
  summary: 'What was and is being done to the database, newest first',
  permissions: ['databases.view'],
  params: { databaseId },
  query: workflowListQuery,
  response: { status: 200, schema: pageOf(workflowSchema) },
  problems: [],
  tags,
});

export const getDatabaseWorkflow = endpoint({
  id: 'getDatabaseWorkflow',
  service: 'databases',
  method: 'GET',
  path: '/v1/databases/{databaseId}/workflows/{workflowId}',
  summary: 'One workflow with its steps',
  permissions: ['databases.view'],
  params: { databaseId, workflowId },
  response: { status: 200, schema: workflowSchema },
  problems: [],
  tags,
});

export const watchDatabaseWorkflow = endpoint({
  id: 'watchDatabaseWorkflow',
  service: 'databases',
  method: 'GET',
  path: '/v1/databases/{databaseId}/workflows/{workflowId}/events',
  summary: 'Its changes as server-sent events; ends with it or after 60 s, resumes by Last-Event-ID',
  permissions: ['databases.view'],
  params: { databaseId, workflowId },
  response: {
    status: 200,
    schema: workflowSchema,
    contentType: 'text/event-stream',
    eventLines: 'id: 5\nevent: workflow',
  },
  problems: [],
  tags,
});

export const retryDatabaseWorkflow = endpoint({
  id: 'retryDatabaseWorkflow',
  service: 'databases',
  method: 'POST',
  path: '/v1/databases/{databaseId}/workflows/{workflowId}/retry',
  summary: 'Staff: go on with a workflow that needs attention',
  permissions: ['platform.staff'],
  params: { databaseId, workflowId },
  response: { status: 202, schema: workflowSchema },
  problems: ['workflow_not_waiting'],
  inDemo: nothingWaits,
  tags,
});

export const abandonDatabaseWorkflow = endpoint({
  id: 'abandonDatabaseWorkflow',
  service: 'databases',
  method: 'POST',
  path: '/v1/databases/{databaseId}/workflows/{workflowId}/abandon',
  summary:
    'Staff: give up a workflow that needs attention and unlock the database; ' +
    'error.detail says what state it is left in',
  permissions: ['platform.staff'],
  params: { databaseId, workflowId },
  response: { status: 202, schema: workflowSchema },
  problems: ['workflow_not_waiting'],
  inDemo: nothingWaits,
  tags,
});
