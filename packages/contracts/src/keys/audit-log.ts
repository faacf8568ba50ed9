import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { createdFilter } from '../platform/filters';
import { idSchema, pageOf, pageQuerySchema, timestampSchema, uuidSchema } from '../platform/values';

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

/** A delivery of a service's outbox to keys: in order, at least once; the entry's id makes a repeat harmless. */
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
