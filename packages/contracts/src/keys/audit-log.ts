import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { pageOf, pageQuerySchema, timestampSchema, uuidSchema } from '../platform/values';

export const auditEntrySchema = z
  .strictObject({
    id: uuidSchema.describe('The entry.'),
    org_id: uuidSchema.describe('The organisation that the target belongs to.'),
    actor_key_id: uuidSchema.nullable().describe('The key that made the call; null where the clock or staff began the work.'),
    action: z.string().describe('What was done, such as backup.take.'),
    target: z.string().describe('The path of what was acted on, such as /v1/sites/{siteId}.'),
    workflow_id: uuidSchema.nullable().describe('The workflow that does it; null where the call did it at once.'),
    at: timestampSchema.describe('When it was accepted.'),
  })
  .meta({ id: 'AuditEntry' });
export type AuditEntry = z.infer<typeof auditEntrySchema>;

/** What a service's outbox delivers to keys: in order, at least once; the entry's id makes a repeat harmless. */
export const auditDeliverySchema = z.strictObject({
  service: z.string(),
  entries: z.array(auditEntrySchema.extend({ mode: z.enum(['live', 'sandbox']) })).max(500),
});

export const listAuditLog = endpoint({
  id: 'listAuditLog',
  service: 'keys',
  method: 'GET',
  path: '/v1/audit-log',
  summary: 'What was accepted, by which key, newest first',
  permissions: ['audit.view'],
  query: pageQuerySchema,
  response: { status: 200, schema: pageOf(auditEntrySchema) },
  problems: [],
  tags: ['Audit log'],
});
