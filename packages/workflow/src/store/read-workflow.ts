import type { Finding } from '@drydock/contracts/platform/preflight';
import { problem } from '@drydock/contracts/platform/problem';
import { problems } from '@drydock/contracts/platform/problems';
import type { Mode } from '@drydock/contracts/platform/values';
import type { WorkflowFilter, WorkflowStatus, WorkflowView } from '@drydock/contracts/platform/workflows';
import type { Sql } from '@drydock/service/database';
import { cutText, type WorkflowProblem } from '../definition/step-error';
import { traceIdOf } from './telemetry';

export type WorkflowFailure = Omit<WorkflowProblem, 'internal'>;

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
  error: WorkflowFailure | null;
  request_id: string;
  traceparent: string | null;
  /** The findings of all completed steps, in order. */
  findings: WorkflowView['findings'];
  /** The steps in order, with times in milliseconds since 1970. */
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
    error: isTold(row) ? viewFailure(row.error, row.request_id) : null,
    findings: row.findings,
    trace_id: traceIdOf(row.traceparent),
  };
}

/**
 * Whether the view shows the error. The error of an abandoned workflow describes the resource, so it is shown as soon
 * as staff have decided.
 */
const isTold = ({ status, error }: WorkflowRow): boolean =>
  status === 'failed' || status === 'needs_attention' || (error?.code === 'abandoned' && status !== 'succeeded');

const detailCharsMax = 2_000;
const findingCharsMax = 1_000;
const findingsBytesMax = 32 * 1024;

/**
 * The findings of a failure, cut to {@link findingsBytesMax} of JSON. The agents write findings about the customer's
 * objects, so neither their number nor their length has a limit.
 */
function limitedFindings(findings: readonly Finding[]): Finding[] {
  const kept: Finding[] = [];
  let bytes = 0;
  for (const finding of findings) {
    const shown = { ...finding, detail: cutText(finding.detail, findingCharsMax) };
    bytes += Buffer.byteLength(JSON.stringify(shown));
    if (bytes > findingsBytesMax) {
      const detail = `There are ${findings.length - kept.length} more findings than are shown here.`;
      return [...kept, { level: 'INFO', code: 'more_findings', detail }];
    }
    kept.push(shown);
  }
  return kept;
}

const limitedExtra = (extra: Record<string, unknown>): Record<string, unknown> =>
  Array.isArray(extra['findings']) ? { ...extra, findings: limitedFindings(extra['findings']) } : extra;

/**
 * A workflow's failure as customers see it: at most 60 kB of JSON, also if an earlier release has stored more. An event
 * contains the failure, and the keys service takes only events of a limited size.
 */
export function viewFailure(failure: WorkflowFailure | null, requestId: string): NonNullable<WorkflowView['error']> {
  const told = failure ?? { code: 'step_failed' as const };
  // A failure may have been stored with a code that the present code does not have.
  const code = Object.hasOwn(problems, told.code) ? told.code : 'step_failed';
  const details = {
    ...(told.detail === undefined ? {} : { detail: cutText(told.detail, detailCharsMax) }),
    ...(told.extra === undefined ? {} : { extra: limitedExtra(told.extra) }),
  };
  return problem(code, details).body(requestId);
}

/** The columns of {@link WorkflowRow}, from a table or a set of rows that is called `workflow`. */
export const viewColumns = `workflow.id, workflow.kind, subject_type, subject_id, workflow.status, created_at,
  workflow.started_at, workflow.finished_at, progress, version, error, request_id, traceparent,
  coalesce((SELECT json_agg(json_build_object('name', step.name, 'status', step.status, 'attempts', step.attempts,
      'started_ms', floor(extract(epoch FROM step.started_at) * 1000),
      'finished_ms', floor(extract(epoch FROM step.finished_at) * 1000)) ORDER BY step.position)
    FROM workflow_step step WHERE step.workflow_id = workflow.id), '[]'::json) AS steps,
  coalesce((SELECT jsonb_agg(finding ORDER BY step.position) FROM workflow_step step,
    jsonb_path_query(step.output, '$.findings[*]') finding
    WHERE step.workflow_id = workflow.id AND step.status = 'succeeded'), '[]'::jsonb) AS findings`;

/**
 * The workflows that the caller may see. A workflow of another organisation, mode or subject is treated as not found.
 */
export interface WorkflowScope {
  orgId: string;
  mode: Mode;
  subject: { type: string; id: string };
}

export interface VersionedWorkflow {
  /** The version, which grows with every change. */
  version: number;
  view: WorkflowView;
}

/** Reads a workflow. Undefined if no workflow in `scope` has this id. `workflowId` must be a UUID. */
export async function readWorkflow(
  sql: Sql,
  workflowId: string,
  scope: WorkflowScope,
): Promise<VersionedWorkflow | undefined> {
  const [row] = await sql.query<WorkflowRow>(readSql, [
    workflowId,
    scope.orgId,
    scope.mode,
    scope.subject.type,
    scope.subject.id,
  ]);
  return row === undefined ? undefined : { version: row.version, view: viewWorkflow(row) };
}

/** Reads a workflow of any organisation. The caller must have checked who owns the workflow. */
export async function readWorkflowById(sql: Sql, workflowId: string): Promise<VersionedWorkflow | undefined> {
  const [row] = await sql.query<WorkflowRow>(`SELECT ${viewColumns} FROM workflow WHERE id = $1::uuid`, [workflowId]);
  return row === undefined ? undefined : { version: row.version, view: viewWorkflow(row) };
}

const inScope = `org_id = $2::uuid AND mode = $3 AND subject_type = $4 AND subject_id = $5`;
const readSql = `SELECT ${viewColumns} FROM workflow WHERE id = $1::uuid AND ${inScope}`;

export interface WorkflowPage {
  items: WorkflowView[];
  hasMore: boolean;
}

/** Lists at most `limit` workflows, newest first. `beforeId` is the last id of the previous page. */
export async function listWorkflows(
  sql: Sql,
  { orgId, mode, subject }: WorkflowScope,
  page: { limit: number; beforeId?: string },
  { status, kind, created_after: from, created_before: to }: WorkflowFilter = {},
): Promise<WorkflowPage> {
  const narrowed = [status ?? null, kind ?? null, from ?? null, to ?? null];
  const rows = await sql.query<WorkflowRow>(listSql, [
    page.beforeId ?? null,
    orgId,
    mode,
    subject.type,
    subject.id,
    page.limit + 1,
    ...narrowed,
  ]);
  return { items: rows.slice(0, page.limit).map(viewWorkflow), hasMore: rows.length > page.limit };
}

const listSql = `SELECT ${viewColumns} FROM workflow WHERE ($1::uuid IS NULL OR id < $1::uuid) AND ${inScope}
  AND ($7::text[] IS NULL OR status = ANY ($7::text[])) AND ($8::text IS NULL OR kind = $8)
  AND ($9::timestamptz IS NULL OR created_at >= $9::timestamptz)
  AND ($10::timestamptz IS NULL OR created_at < $10::timestamptz)
  ORDER BY id DESC LIMIT $6::int`;
