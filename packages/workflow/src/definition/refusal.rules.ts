import type { ProblemCode } from '@drydock/contracts/platform/problems';

/** The one unfinished workflow that locks a resource. */
export interface UnfinishedWorkflow {
  id: string;
  kind: string;
  status: 'queued' | 'running' | 'needs_attention';
}

/**
 * The reason why something may not be done now. The handler checks first, so that the caller gets a clear answer. The
 * first step checks again, because the state may have changed since.
 */
export interface Refusal {
  code: ProblemCode;
  extra?: Record<string, unknown>;
  retryAfterSeconds?: number;
}

/** The `in_progress` of a surface: true exactly while the guard answers `operation_in_progress`. */
export const isInProgress = (unfinished: Pick<UnfinishedWorkflow, 'id' | 'status'> | null): boolean =>
  refusalByWorkflow(unfinished)?.code === 'operation_in_progress';

/**
 * The refusal that precedes all refusals by a resource's state: a workflow runs on the resource, or waits for staff.
 */
export function refusalByWorkflow(unfinished: Pick<UnfinishedWorkflow, 'id' | 'status'> | null): Refusal | null {
  if (unfinished === null) return null;
  const code = unfinished.status === 'needs_attention' ? 'needs_attention' : 'operation_in_progress';
  return { code, extra: { workflow_id: unfinished.id } };
}
