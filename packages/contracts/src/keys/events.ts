import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { problemSchema } from '../platform/problems';
import {
  anyOf,
  createdFilter,
  idSchema,
  modeSchema,
  pageOf,
  pageQuerySchema,
  timestampSchema,
  uuidSchema,
} from '../platform/values';
import { workflowListQuery, workflowStatusSchema } from '../platform/workflows';

export const auditEntrySchema = z
  .strictObject({
    id: uuidSchema.describe('The entry.'),
    org_id: uuidSchema.describe('The organisation that the target belongs to.'),
    actor_key_id: uuidSchema
      .nullable()
      .describe('The key that made the call; null where the clock or staff began the work.'),
    action: z.string().describe('What was done, such as backup.take.'),
    target: z.string().describe('The path of what was acted on, such as /v1/sites/{siteId}.'),
    workflow_id: uuidSchema.nullable().describe('The workflow that does it; null where the call did it at once.'),
    at: timestampSchema.describe('When it was accepted.'),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof auditEntrySchema>;

/**
 * A delivery of a service's audit entries to the keys service. Entries come in order and at least once. A repeat is
 * recognised by the entry's id.
 */
export const auditDeliverySchema = z.strictObject({
  service: z.string(),
  entries: z.array(auditEntrySchema.extend({ mode: z.enum(['live', 'sandbox']) })).max(500),
});

const auditListQuery = pageQuerySchema.extend({
  org_id: idSchema.optional().meta({
    description: "The log of this organisation, which is the caller's own or below it. Left out: the caller's own",
  }),
  children: z
    .enum(['true', 'false'])
    .default('false')
    .meta({ description: 'true: and of every organisation below it, in one list' }),
  actor_key_id: idSchema.optional().meta({ description: 'Only what this key asked for' }),
  action: z
    .string()
    .regex(/^[a-z0-9_.]{1,60}$/, 'must be an action, such as backup.take')
    .optional()
    .meta({ description: 'Only this action, such as backup.take' }),
  target: z
    .string()
    .max(300)
    .optional()
    .meta({ description: 'Only what was done to this: its path, such as /v1/sites/{siteId}' }),
  ...createdFilter,
});
export type AuditFilter = Omit<z.output<typeof auditListQuery>, 'cursor' | 'limit'>;

export const listAuditLog = endpoint({
  id: 'listAuditLog',
  service: 'keys',
  method: 'GET',
  path: '/v1/audit-log',
  summary: 'What was accepted, by which key, newest first; with children=true in the organisations below as well',
  permissions: ['audit.view'],
  query: auditListQuery,
  response: { status: 200, schema: pageOf(auditEntrySchema) },
  problems: ['org_out_of_scope', 'sandbox_key'],
  tags: ['Audit log'],
});

/**
 * The meaning of each type of event. The service that runs a workflow sends the types `workflow.*`, each when the
 * workflow reaches the state that the type describes. `webhook.disable` and `*.storage_*` come from Drydock itself,
 * without a call. Every other type is the action of a call, or of a command of staff, that was carried out at once.
 */
export const eventMeanings = {
  'workflow.accepted': 'Long work was accepted',
  'workflow.succeeded': 'Long work has ended well',
  'workflow.failed': 'Long work has failed; what it began was taken back',
  'workflow.needs_attention': 'Long work waits for staff',
  'workflow.retried': 'Staff have looked at long work that waited for them, and it goes on',
  'api_key.create': 'A key was minted',
  'api_key.update': 'A key was changed: its name, its permissions, its end or its addresses',
  'api_key.rotate': 'A key was replaced by a new one',
  'api_key.revoke': 'A key was revoked',
  'webhook.create': 'A webhook was created',
  'webhook.update': 'A webhook was changed',
  'webhook.rotate_secret': 'A webhook was given a new secret',
  'webhook.delete': 'A webhook was deleted',
  'webhook.disable': 'A webhook was switched off, because it failed for five days or answered that it is gone',
  'webhook.test': 'Somebody wants to see whether a webhook works; sent to that one alone',
  'org.create': 'An organisation was created',
  'org.update': "An organisation's name or permissions were changed",
  'offsite.remove': "A site no longer knows its customer's storage",
  'site.domain.prove': 'The domain of a site was proven',
  'deleted_site.hold': 'Staff have kept a deleted site from being brought back',
  'deleted_site.release': 'A deleted site may be brought back again',
  'site.update': "A site's name or metadata were changed",
  'server.update': "A server's name or metadata were changed",
  'site.storage_nearly_full': "A site's files or its database use nine tenths of their storage",
  'site.storage_full': "A site's files or its database are full: they take no more until some is removed",
  'site.storage_closed': "A site's database is more than a fifth over its storage, and gets no sessions",
  'site.storage_freed': 'A site that was full takes more again',
  'database.update': "A database's label or metadata were changed",
  'database.storage_nearly_full': 'A database uses nine tenths of its storage',
  'database.storage_full': 'A database is full: it takes no more until some of it is removed',
  'database.storage_closed': 'A database is more than a fifth over its storage, and gets no sessions',
  'database.storage_freed': 'A database that was full takes more again',
  'quota.set': "Staff have set an organisation's quota",
  'board.create': 'A board was created',
  'board.add_column': 'A column was added to a board',
  'board.add_label': 'A label was added to a board',
  'board.delete': 'A board was deleted',
  'board.delete_column': 'A column of a board was deleted',
  'board.delete_label': 'A label of a board was deleted',
  'card.create': 'A card was created',
  'card.update': 'A card was changed',
  'card.archive': 'A card was put into the archive',
  'card.restore': 'A card was taken out of the archive',
} as const;

export type EventType = keyof typeof eventMeanings;
export const isEventType = (value: string): value is EventType => Object.hasOwn(eventMeanings, value);
export const eventTypes: readonly EventType[] = Object.keys(eventMeanings).filter(isEventType);
export const eventTypeSchema = z.enum(Object.keys(eventMeanings).filter(isEventType)).meta({ id: 'EventType' });

/** The types that a list such as `workflow.*,api_key.create` means, or null when a name in it matches no type. */
export function typesMeant(list: string): EventType[] | null {
  const named = list.split(',').map((name) => {
    const isWanted = name.endsWith('.*')
      ? (type: string) => type.startsWith(name.slice(0, -1))
      : (type: string) => type === name;
    return eventTypes.filter(isWanted);
  });
  return named.some((types) => types.length === 0) ? null : [...new Set(named.flat())];
}

/** The days for which an event can be read. */
export const eventDays = 30;

export const eventSchema = z
  .strictObject({
    id: uuidSchema.describe('The event. It is delivered at least once: an id that was seen before is a repeat.'),
    type: eventTypeSchema.describe('The kind of event.'),
    at: timestampSchema.describe('When it happened.'),
    org_id: uuidSchema.describe('The organisation in which it happened.'),
    resource: z.string().describe('The path of what it happened to, such as /v1/sites/{siteId}.'),
    actor_key_id: uuidSchema.nullable().describe('The key whose call began it; null where the clock or staff did.'),
    workflow: z
      .strictObject({
        id: uuidSchema.describe('The workflow.'),
        kind: z.string().describe('The kind of work, such as restore_backup.'),
        status: workflowStatusSchema.describe('Its status at the time of the event.'),
        error: problemSchema.nullable().describe('Why it failed or waits for staff; null otherwise.'),
      })
      .meta({ id: 'EventWorkflow' })
      .nullable()
      .describe('The long work that it tells of; null for a change that was done at once.'),
  })
  .meta({ id: 'Event' });
export type Event = z.infer<typeof eventSchema>;

/**
 * A delivery of a service's workflow events to the keys service. Events come in order and at least once. A repeat is
 * recognised by the event's id.
 */
export const eventDeliverySchema = z.strictObject({
  service: z.string(),
  entries: z.array(eventSchema.extend({ mode: modeSchema })).max(500),
});

const tags = ['Events'] as const;
const type = z
  .string()
  .refine((text) => typesMeant(text) !== null, 'must be names of event types with commas between them')
  .optional()
  .meta({
    description: 'Only events of these types: names with commas between them; workflow.* stands for all that begin so',
  });
const resource = z
  .string()
  .max(300)
  .optional()
  .meta({ description: 'Only events of this resource: its path, such as /v1/sites/{siteId}' });

const after = z
  .string()
  .optional()
  .meta({
    description:
      'Only events that came after the one with this id, oldest first: how a reader goes on where it was. ' +
      'Zeros: from the first one on',
  });

const eventPageSchema = pageOf(eventSchema)
  .extend({
    next_after: uuidSchema
      .nullable()
      .describe(
        'The after of the next call, with the same filter: nothing up to this event is missing. ' +
          'Null without after, and on every page but the last.',
      ),
  })
  .meta({ id: 'EventPage' });

export const listEvents = endpoint({
  id: 'listEvents',
  service: 'keys',
  method: 'GET',
  path: '/v1/events',
  summary:
    `What happened in the organisation in the last ${eventDays} days, newest first; ` +
    'with after, what came since, oldest first',
  permissions: ['audit.view'],
  query: pageQuerySchema.extend({
    type,
    resource,
    after,
  }),
  response: { status: 200, schema: eventPageSchema },
  problems: [],
  tags,
});

export const watchEvents = endpoint({
  id: 'watchEvents',
  service: 'keys',
  method: 'GET',
  path: '/v1/events/stream',
  summary:
    'The same as server-sent events, from now on or after an event; begins with one called ready, ' +
    'which comes again where newer events do not match; ends after 60 s, resumes by Last-Event-ID',
  permissions: ['audit.view'],
  query: z.strictObject({ type, resource, after }),
  response: {
    status: 200,
    schema: eventSchema,
    contentType: 'text/event-stream',
    eventLines: 'id: 01a208be-f0eb-7d31-82a5-1e3a0fff2b2c\nevent: workflow.succeeded',
  },
  problems: [],
  tags,
});

export const getEvent = endpoint({
  id: 'getEvent',
  service: 'keys',
  method: 'GET',
  path: '/v1/events/{eventId}',
  summary: 'One event',
  permissions: ['audit.view'],
  params: { eventId: { schema: idSchema.describe('The event.'), notFound: 'event_not_found' } },
  response: { status: 200, schema: eventSchema },
  problems: [],
  tags,
});

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

const summaryListQuery = workflowListQuery.extend({
  status: anyOf(workflowOutcomeSchema, 'work of these statuses'),
  resource: z
    .string()
    .max(300)
    .optional()
    .meta({ description: 'Only work on this resource: its path, such as /v1/sites/{siteId}' }),
});
export type WorkflowSummaryFilter = Omit<z.output<typeof summaryListQuery>, 'cursor' | 'limit'>;

export const listWorkflows = endpoint({
  id: 'listWorkflows',
  service: 'keys',
  method: 'GET',
  path: '/v1/workflows',
  summary:
    'All long work of the organisation, newest first: ' +
    `what is unfinished, and what ended in the last ${eventDays} days; it follows the events`,
  permissions: ['audit.view'],
  query: summaryListQuery,
  response: { status: 200, schema: pageOf(workflowSummarySchema) },
  problems: [],
  tags: ['Workflows'],
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
  tags: ['Workflows'],
});
