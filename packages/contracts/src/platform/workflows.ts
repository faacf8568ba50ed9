import { z } from 'zod';
import { findingSchema } from './preflight';
import { problemSchema } from './problems';
import { timestampSchema, uuidSchema } from './values';

export const workflowStatusSchema = z.enum(['queued', 'running', 'succeeded', 'failed', 'needs_attention']);
export type WorkflowStatus = z.infer<typeof workflowStatusSchema>;

export const workflowStepSchema = z
  .strictObject({
    name: z.string(),
    status: z.enum(['pending', 'running', 'succeeded', 'failed', 'undone']),
    attempts: z.int().min(0),
    started_at: timestampSchema.nullable(),
    finished_at: timestampSchema.nullable(),
  })
  .meta({ id: 'WorkflowStep' });

/** Long work as a client sees it. `error` is set once the status is failed or needs_attention, or staff have abandoned it. */
export const workflowSchema = z
  .strictObject({
    id: uuidSchema,
    kind: z.string(),
    subject: z.strictObject({ type: z.string(), id: z.string() }),
    status: workflowStatusSchema,
    created_at: timestampSchema,
    started_at: timestampSchema.nullable(),
    finished_at: timestampSchema.nullable(),
    progress: z.int().min(0).max(100),
    steps: z.array(workflowStepSchema),
    error: problemSchema.nullable(),
    /** What its steps have found that does not fail it, such as paths that a backup does not hold. */
    findings: z.array(findingSchema),
    trace_id: z.string().nullable(),
  })
  .meta({ id: 'Workflow' });
export type WorkflowView = z.infer<typeof workflowSchema>;
