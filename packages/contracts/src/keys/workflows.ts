import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { problemSchema } from '../platform/problems';
import { anyOf, idSchema, pageOf, timestampSchema, uuidSchema } from '../platform/values';
import { workflowListQuery } from '../platform/workflows';
import { eventDays } from './events';

export const workflowOutcomeSchema = z.enum(['unfinished', 'needs_attention', 'succeeded', 'failed']);
export type WorkflowOutcome = z.infer<typeof workflowOutcomeSchema>;

/** A workflow, as far as its events describe it. */
export const workflowSummarySchema = z
  .strictObject({
    id: uuidSchema.describe('The workflow.'),
    kind: z.string().describe('The kind of work, such as restore_backup.'),
    status: workflowOutcomeSchema.describe('unfinished waits for a worker or is being done; its url tells which.'),
    resource: z.string().describe('The path of what it is done to, such as /v1/sites/{siteId}.'),
    url: z.string().describe('Where the whole workflow can be read, with its steps.'),
    actor_key_id: uuidSchema.nullable().describe('The key whose call began it; null where the clock or staff did.'),
    created_at: timestampSchema.describe('When it was accepted.'),
    updated_at: timestampSchema.describe('When it came to this status.'),
    error: problemSchema.nullable().describe('Why it failed or waits for staff; null otherwise.'),
  })
  .meta({ id: 'WorkflowSummary' });
export type WorkflowSummary = z.infer<typeof workflowSummarySchema>;

const listQuery = workflowListQuery.extend({
  status: anyOf(workflowOutcomeSchema, 'work of these statuses'),
  resource: z
    .string()
    .max(300)
    .optional()
    .meta({ description: 'Only work on this resource: its path, such as /v1/sites/{siteId}' }),
});
export type WorkflowSummaryFilter = Omit<z.output<typeof listQuery>, 'cursor' | 'limit'>;

const tags = ['Workflows'] as const;

export const listWorkflows = endpoint({
  id: 'listWorkflows',
  service: 'keys',
  method: 'GET',
  path: '/v1/workflows',
  summary:
    'All long work of the organisation, newest first: ' +
    `what is unfinished, and what ended in the last ${eventDays} days; it follows the events`,
  permissions: ['audit.view'],
  query: listQuery,
  response: { status: 200, schema: pageOf(workflowSummarySchema) },
  problems: [],
  tags,
});

export const getWorkflow = endpoint({
  id: 'getWorkflow',
  service: 'keys',
  method: 'GET',
  path: '/v1/workflows/{workflowId}',
  summary: 'Where a workflow of the organisation stands and where all of it is read, when nothing but its id is known',
  permissions: ['audit.view'],
  params: { workflowId: { schema: idSchema.describe('The workflow.'), notFound: 'workflow_not_found' } },
  response: { status: 200, schema: workflowSummarySchema },
  problems: [],
  tags,
});
