import { z } from 'zod';
import { problemSchema } from './problems';
import { timestampSchema } from './values';

/** What a client should know of an operation, beside whether it is allowed or has succeeded. */
export const findingSchema = z.strictObject({ level: z.enum(['INFO', 'WARNING', 'ERROR']), code: z.string(), detail: z.string() });
export type Finding = z.infer<typeof findingSchema>;

/** What a dangerous call would do, and the exact refusal it would give now. Changes nothing. */
export const preflightSchema = z
  .strictObject({
    would: z.string(),
    resource: z.string(),
    point: z.strictObject({ id: z.string(), taken_at: timestampSchema, age_seconds: z.int().min(0) }).nullable(),
    space: z.strictObject({ needed_bytes: z.int().min(0), free_bytes: z.int().min(0).nullable() }).nullable(),
    refusal: problemSchema.nullable(),
    findings: z.array(findingSchema),
    undo: z.literal(false),
  })
  .meta({ id: 'Preflight' });
export type Preflight = z.infer<typeof preflightSchema>;
