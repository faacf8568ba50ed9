import { z } from 'zod';
import { changeFields } from '../control/control-protocol';

/** The caller chooses the ids, so that it can send a submission again when the answer was lost. */
export const jobIdSchema = z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/);

export const submitJobSchema = z.strictObject({
  ...changeFields,
  kind: z.string().regex(/^[a-z][a-z_]{0,31}$/),
  spec: z.unknown(),
});
export type SubmitJob = z.infer<typeof submitJobSchema>;

/**
 * | from | to | when |
 * |---|---|---|
 * | (none) | queued | submitted, journaled |
 * | queued | running | a place is free and, where the kind has one, the channel is open |
 * | queued, running | succeeded | the work returned a result |
 * | queued, running | failed | the work threw; the host or the channel died (`interrupted`) |
 * | queued, running | cancelled | the caller's DELETE; a newer claim (`superseded`) |
 */
export const jobStateSchema = z.enum(['queued', 'running', 'succeeded', 'failed', 'cancelled']);
export type JobState = z.infer<typeof jobStateSchema>;

/**
 * `code` is stable, and each kind of job defines its codes. `detail` is for logs. `facts` are what else a caller of
 * this kind of job needs to know about the problem.
 */
export const jobProblemSchema = z.object({
  code: z.string(),
  detail: z.string(),
  facts: z.record(z.string(), z.string()).optional(),
});
export type JobProblemView = z.infer<typeof jobProblemSchema>;

export const jobViewSchema = z.object({
  job_id: jobIdSchema,
  kind: z.string(),
  state: jobStateSchema,
  /** 0 to 1. */
  progress: z.number(),
  result: z.unknown(),
  problem: jobProblemSchema.nullable(),
  created_at: z.string(),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
});
export type JobView = z.infer<typeof jobViewSchema>;

/** Why a job failed, with a code that is the same in every process. `interrupted` means: run the step again. */
export class JobProblem extends Error {
  override readonly name = 'JobProblem';
  readonly code: string;
  readonly facts: Readonly<Record<string, string>>;

  constructor(
    code: string,
    detail: string,
    options: ErrorOptions & { facts?: Record<string, string> | undefined } = {},
  ) {
    super(detail, options);
    this.code = code;
    this.facts = options.facts ?? {};
  }
}
