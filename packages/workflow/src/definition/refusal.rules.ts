import type { ProblemCode } from '@drydock/contracts/platform/problems';

/** The unfinished workflow that locks a resource. A resource has at most one. */
export interface UnfinishedWorkflow {
  id: string;
  kind: string;
  status: 'queued' | 'running' | 'needs_attention';
}

/**
 * The reason why a change may not be made now. The handler of the request checks for a refusal, so that the caller gets
 * a clear answer. The first step of the workflow checks again, because the state may have changed since the request.
 */
export interface Refusal {
  code: ProblemCode;
  extra?: Record<string, unknown>;
  retryAfterSeconds?: number;
}

/**
 * The value of the field `in_progress` that the API shows of a resource. It is true exactly while a call would be
 * refused with `operation_in_progress`.
 */
export const isInProgress = (unfinished: Pick<UnfinishedWorkflow, 'id' | 'status'> | null): boolean =>
  refusalByWorkflow(unfinished)?.code === 'operation_in_progress';

/**
 * The refusal of a call because a workflow runs on the resource or waits for staff. It takes precedence over every
 * refusal that the state of the resource causes.
 */
export function refusalByWorkflow(unfinished: Pick<UnfinishedWorkflow, 'id' | 'status'> | null): Refusal | null {
  if (unfinished === null) return null;
  const code = unfinished.status === 'needs_attention' ? 'needs_attention' : 'operation_in_progress';
  return { code, extra: { workflow_id: unfinished.id } };
}
