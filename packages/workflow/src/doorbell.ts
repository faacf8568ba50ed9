import { z } from 'zod';

/** All that a job says. Everything else is in Postgres; a claim that finds another organisation there takes nothing. */
export const doorbellSchema = z.strictObject({ workflowId: z.uuid(), orgId: z.uuid(), traceparent: z.string().max(100).optional() });
export type Doorbell = z.infer<typeof doorbellSchema>;

const noId = '00000000-0000-7000-8000-000000000000';
/** Rung now and then to see that the queue still delivers; no workflow has its id. */
export const nobody: Doorbell = { workflowId: noId, orgId: noId };

/**
 * BullMQ ignores an id that it still knows, so each dispatch has its own: number 0 is the accepting process's, the sweep counts from 1.
 * An id must have no colon and not be all digits.
 */
export const jobId = (workflowId: string, dispatchNumber: number | string): string => `${workflowId}-${dispatchNumber}`;
