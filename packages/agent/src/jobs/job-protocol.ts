import { ArchiveError, systemErrorCode } from '@drydock/archive';
import { z } from 'zod';
import { changeFields } from '../control/control-protocol';

/** The id of a job. The caller chooses the id, so that a submission whose answer was lost can be repeated. */
export const jobIdSchema = z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/);

export const submitJobSchema = z.strictObject({
  ...changeFields,
  kind: z.string().regex(/^[a-z][a-z_]{0,31}$/),
  spec: z.unknown(),
});
export type SubmitJob = z.infer<typeof submitJobSchema>;

/**
 * The states of a job and their transitions:
 *
 * | from | to | when |
 * |---|---|---|
 * | (none) | queued | the job was submitted and written to disk |
 * | queued | running | a place is free, and the channel is open if the kind of job has a channel |
 * | running | succeeded | the work returned a result |
 * | running | failed | the work threw an error |
 * | queued, running | failed | the agent ended, or the channel was not opened or broke (`interrupted`) |
 * | queued, running | cancelled | the caller sent DELETE |
 * | queued, running | cancelled | a newer claim came, or a later job with the same lock (`superseded`) |
 */
export const jobStateSchema = z.enum(['queued', 'running', 'succeeded', 'failed', 'cancelled']);
export type JobState = z.infer<typeof jobStateSchema>;

/**
 * The problem of a failed or cancelled job. `code` is stable, and each kind of job defines its codes. `detail` is for
 * logs. `facts` are further details for callers of this kind of job.
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
  /** The share of the work that is done, from 0 to 1. */
  progress: z.number(),
  result: z.unknown(),
  problem: jobProblemSchema.nullable(),
  created_at: z.string(),
  started_at: z.string().nullable(),
  finished_at: z.string().nullable(),
});
export type JobView = z.infer<typeof jobViewSchema>;

/**
 * The error of a failed job. The job's child, the agent and the caller pass its code on unchanged. After `interrupted`
 * the caller runs the step again, as a new job.
 */
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

const fullDiskCodes = new Set(['53100', 'ENOSPC', 'EDQUOT', 'ER_DISK_FULL', 'ER_RECORD_FILE_FULL']);

/**
 * Tells whether an error, or one of its causes, means a full disk. The codes are those of Postgres (53100), MySQL
 * (`ER_…`) and the file system.
 */
export function isDiskFull(error: unknown, depth = 0): boolean {
  if (fullDiskCodes.has(systemErrorCode(error))) return true;
  if (error instanceof ArchiveError && error.reason === 'no_space') return true;
  return depth < 5 && error instanceof Error && isDiskFull(error.cause, depth + 1);
}
