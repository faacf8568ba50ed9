import { z } from 'zod';
import { endpoint, type PathParameter, type ServiceName } from './endpoint';
import type { Permission } from './permissions';
import { findingSchema } from './preflight';
import { problemSchema } from './problems';
import { anyOf, createdFilter, idSchema, pageOf, pageQuerySchema, timestampSchema, uuidSchema } from './values';

export const workflowStatusSchema = z.enum(['queued', 'running', 'succeeded', 'failed', 'needs_attention']);
export type WorkflowStatus = z.infer<typeof workflowStatusSchema>;

export const workflowStepSchema = z
  .strictObject({
    name: z.string().describe('The step, as docs of its workflow name it.'),
    status: z
      .enum(['pending', 'running', 'succeeded', 'failed', 'undone'])
      .describe('undone means that its effect was taken back.'),
    attempts: z.int().min(0).describe('How often it was begun.'),
    started_at: timestampSchema.nullable().describe('When it was first begun; null before.'),
    finished_at: timestampSchema.nullable().describe('When it ended; null before.'),
  })
  .meta({ id: 'WorkflowStep' });

/**
 * Long-running work as a client sees it. `error` is set if the status is failed or needs_attention, or if staff have
 * abandoned the work.
 */
export const workflowSchema = z
  .strictObject({
    id: uuidSchema.describe('The workflow.'),
    kind: z.string().describe('The kind of work, such as restore_backup.'),
    subject: z
      .strictObject({
        type: z.string().describe('The kind of resource, such as site.'),
        id: z.string().describe("The resource's id."),
      })
      .meta({ id: 'WorkflowSubject' })
      .describe('The resource that it works on. No other work begins on it meanwhile.'),
    status: workflowStatusSchema.describe('succeeded and failed are final. needs_attention waits for staff.'),
    created_at: timestampSchema.describe('When the call was accepted.'),
    started_at: timestampSchema.nullable().describe('When its first step was begun; null before.'),
    finished_at: timestampSchema.nullable().describe('When it ended; null before.'),
    progress: z.int().min(0).max(100).describe('Percent that is done.'),
    steps: z.array(workflowStepSchema).describe('In the order in which they are done.'),
    error: problemSchema
      .nullable()
      .describe(
        'Why it failed, once status is failed or needs_attention, or once staff have abandoned it; null otherwise.',
      ),
    findings: z.array(findingSchema).describe('News that does not fail it, such as paths that a backup does not hold.'),
    trace_id: z
      .string()
      .nullable()
      .describe('The OpenTelemetry trace, 32 hexadecimal digits; null where tracing is off.'),
  })
  .meta({ id: 'Workflow' });
export type WorkflowView = z.infer<typeof workflowSchema>;

/**
 * The workflow's id in an answer that accepts work. The specification fixes some bodies without this field. So every
 * 202 also has the header `X-Workflow-Id`.
 */
export const acceptedWork = {
  workflow_id: uuidSchema.describe('The workflow that does it; Location is its path.'),
} as const;

/**
 * The query of a list of workflows. `kind` is no enumeration, because a workflow can outlive the version of Drydock
 * that knew its kind.
 */
export const workflowListQuery = pageQuerySchema.extend({
  status: anyOf(workflowStatusSchema, 'work of these statuses'),
  kind: z
    .string()
    .regex(/^[a-z0-9_]{1,60}$/, 'must be a kind of work, such as restore_backup')
    .optional()
    .meta({ description: 'Only work of this kind, such as restore_backup' }),
  ...createdFilter,
});
export type WorkflowFilter = Omit<z.output<typeof workflowListQuery>, 'cursor' | 'limit'>;

const workflowId = { schema: idSchema.describe('The workflow.'), notFound: 'workflow_not_found' } as const;
/** The reason why no workflow of the demo can be retried or abandoned. */
const nothingWaits = { problem: 'workflow_not_waiting', because: 'no work there needs attention' } as const;

/**
 * The endpoints with which callers follow the workflows of one kind of resource, and staff retry or abandon them.
 * `noun` is part of the endpoints' ids, such as `listSiteWorkflows` for `Site`. `path` and `params` are the path of a
 * single resource and its parameters.
 */
export const workflowEndpoints = <
  const Noun extends string,
  const Params extends Readonly<Record<string, PathParameter>>,
>({
  noun,
  service,
  path,
  params,
  view,
  listSummary,
  abandonSummary,
  tags = ['Workflows'],
}: {
  noun: Noun;
  service: ServiceName;
  path: string;
  params: Params;
  /** The permission that a caller needs to read the resource. */
  view: Permission;
  listSummary: string;
  abandonSummary: string;
  tags?: readonly string[];
}) => {
  const one = { service, params: { ...params, workflowId }, tags } as const;
  const decision = {
    ...one,
    method: 'POST',
    permissions: ['platform.staff'],
    response: { status: 202, schema: workflowSchema },
    problems: ['workflow_not_waiting'],
    inDemo: nothingWaits,
  } as const;
  return {
    list: endpoint({
      ...one,
      id: `list${noun}Workflows`,
      method: 'GET',
      path: `${path}/workflows`,
      summary: listSummary,
      permissions: [view],
      params,
      query: workflowListQuery,
      response: { status: 200, schema: pageOf(workflowSchema) },
      problems: [],
    }),
    get: endpoint({
      ...one,
      id: `get${noun}Workflow`,
      method: 'GET',
      path: `${path}/workflows/{workflowId}`,
      summary: 'One workflow with its steps',
      permissions: [view],
      response: { status: 200, schema: workflowSchema },
      problems: [],
    }),
    watch: endpoint({
      ...one,
      id: `watch${noun}Workflow`,
      method: 'GET',
      path: `${path}/workflows/{workflowId}/events`,
      summary: 'Its changes as server-sent events; ends with it or after 60 s, resumes by Last-Event-ID',
      permissions: [view],
      response: {
        status: 200,
        schema: workflowSchema,
        contentType: 'text/event-stream',
        eventLines: 'id: 5\nevent: workflow',
      },
      problems: [],
    }),
    retry: endpoint({
      ...decision,
      id: `retry${noun}Workflow`,
      path: `${path}/workflows/{workflowId}/retry`,
      summary: 'Staff: go on with a workflow that needs attention',
    }),
    abandon: endpoint({
      ...decision,
      id: `abandon${noun}Workflow`,
      path: `${path}/workflows/{workflowId}/abandon`,
      summary: abandonSummary,
    }),
  };
};

/**
 * The paths at which a customer reads the subject of a workflow, by the subject's type. The subject's id follows the
 * path. A workflow with a subject of another type belongs to the platform.
 */
export const subjectPaths = {
  site: '/v1/sites/',
  deleted_site: '/v1/sites/deleted/',
  server: '/v1/compute/servers/',
  database: '/v1/databases/',
} as const;
