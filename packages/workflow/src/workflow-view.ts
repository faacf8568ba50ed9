import { problem } from '@drydock/contracts/platform/problem';
import { problems } from '@drydock/contracts/platform/problems';
import type { WorkflowStatus, WorkflowView } from '@drydock/contracts/platform/workflows';
import type { WorkflowProblem } from './step-error';
import { traceIdOf } from './trace';

export interface WorkflowRow {
  id: string;
  kind: string;
  subject_type: string;
  subject_id: string;
  status: WorkflowStatus;
  created_at: Date;
  started_at: Date | null;
  finished_at: Date | null;
  progress: number;
  version: number;
  error: Omit<WorkflowProblem, 'internal'> | null;
  request_id: string;
  traceparent: string | null;
  /** The findings of all steps that are done, in the steps' order. */
  findings: WorkflowView['findings'];
  /** Times in milliseconds since 1970. */
  steps: {
    name: string;
    status: WorkflowView['steps'][number]['status'];
    attempts: number;
    started_ms: number | null;
    finished_ms: number | null;
  }[];
}

export function viewWorkflow(row: WorkflowRow): WorkflowView {
  return {
    id: row.id,
    kind: row.kind,
    subject: { type: row.subject_type, id: row.subject_id },
    status: row.status,
    created_at: row.created_at.toISOString(),
    started_at: row.started_at?.toISOString() ?? null,
    finished_at: row.finished_at?.toISOString() ?? null,
    progress: row.progress,
    steps: row.steps.map(({ name, status, attempts, started_ms, finished_ms }) => ({
      name,
      status,
      attempts,
      started_at: started_ms === null ? null : new Date(started_ms).toISOString(),
      finished_at: finished_ms === null ? null : new Date(finished_ms).toISOString(),
    })),
    error: isTold(row) ? viewError(row) : null,
    findings: row.findings,
    trace_id: traceIdOf(row.traceparent),
  };
}

/** Staff who abandon it are told at once what becomes of its resource, not only when it has ended. */
const isTold = ({ status, error }: WorkflowRow): boolean =>
  status === 'failed' || status === 'needs_attention' || (error?.code === 'abandoned' && status !== 'succeeded');

function viewError({ error, request_id: requestId }: WorkflowRow): WorkflowView['error'] {
  const told = error ?? { code: 'step_failed' as const };
  // A code that newer code no longer has is still a failure.
  const code = Object.hasOwn(problems, told.code) ? told.code : 'step_failed';
  const details = {
    ...(told.detail === undefined ? {} : { detail: told.detail }),
    ...(told.extra === undefined ? {} : { extra: told.extra }),
  };
  return problem(code, details).body(requestId);
}

/** Columns of {@link WorkflowRow}, from a table or row set called `workflow`. */
export const viewColumns = `workflow.id, workflow.kind, subject_type, subject_id, workflow.status, created_at, workflow.started_at, workflow.finished_at,
  progress, version, error, request_id, traceparent,
  coalesce((SELECT json_agg(json_build_object('name', step.name, 'status', step.status, 'attempts', step.attempts,
      'started_ms', floor(extract(epoch FROM step.started_at) * 1000), 'finished_ms', floor(extract(epoch FROM step.finished_at) * 1000)) ORDER BY step.position)
    FROM workflow_step step WHERE step.workflow_id = workflow.id), '[]'::json) AS steps,
  coalesce((SELECT jsonb_agg(finding ORDER BY step.position) FROM workflow_step step, jsonb_path_query(step.output, '$.findings[*]') finding
    WHERE step.workflow_id = workflow.id AND step.status = 'succeeded'), '[]'::jsonb) AS findings`;
