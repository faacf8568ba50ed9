import { z } from 'zod';
import { problemSchema } from './problems';
import { timestampSchema } from './values';

/** A fact about an operation that a client should know, besides whether it is allowed or has succeeded. */
export const findingSchema = z
  .strictObject({
    level: z
      .enum(['INFO', 'WARNING', 'ERROR'])
      .describe('An ERROR would fail the call, a WARNING loses something, an INFO is good to know.'),
    code: z.string().describe('Stable name of the finding.'),
    detail: z.string().describe('What was found and what to do, for people.'),
  })
  .meta({ id: 'Finding' });
export type Finding = z.infer<typeof findingSchema>;

/**
 * The answer to a preflight: what a dangerous call would do, and the refusal that it would get now. A preflight changes
 * nothing.
 */
export const preflightSchema = z
  .strictObject({
    would: z.string().describe('What the call would do, in one sentence.'),
    resource: z.string().describe('The path of what it would be done to, such as /v1/sites/{siteId}.'),
    point: z
      .strictObject({
        id: z.string().describe('Its id.'),
        taken_at: timestampSchema.describe('The moment whose state it holds.'),
        age_seconds: z.int().min(0).describe('Seconds from that moment to now.'),
      })
      .meta({ id: 'PreflightPoint' })
      .nullable()
      .describe('The backup, snapshot or copy that would be taken; null where there is none.'),
    space: z
      .strictObject({
        needed_bytes: z.int().min(0).describe('Bytes that the work needs at most.'),
        free_bytes: z.int().min(0).nullable().describe('Bytes that are free; null where nobody can tell.'),
      })
      .meta({ id: 'PreflightSpace' })
      .nullable()
      .describe('Room on the disk where the work is done; null where it is not known.'),
    refusal: problemSchema
      .nullable()
      .describe('The problem that the call would be answered with now; null when it would be accepted.'),
    findings: z.array(findingSchema).describe('News that does not refuse it.'),
    undo: z.literal(false).describe('Always false: no call takes it back.'),
  })
  .meta({ id: 'Preflight' });
export type Preflight = z.infer<typeof preflightSchema>;
