import { z } from 'zod';
import { endpoint } from '../platform/endpoint';
import { pageOf, pageQuerySchema, timestampSchema, uuidSchema } from '../platform/values';

export const auditEntrySchema = z
  .strictObject({
    id: uuidSchema,
    org_id: uuidSchema,
    actor_key_id: uuidSchema.nullable(),
    action: z.string(),
    target: z.string(),
    workflow_id: uuidSchema.nullable(),
    at: timestampSchema,
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
