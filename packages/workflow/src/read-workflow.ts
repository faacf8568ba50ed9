import type { Mode } from '@drydock/contracts/platform/values';
import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import type { Sql } from '@drydock/service/database/sql';
import { viewColumns, viewWorkflow, type WorkflowRow } from './workflow-view';

/** What the caller may see: another organisation's, the other mode's and another subject's workflows are not there. */
export interface WorkflowScope {
  orgId: string;
  mode: Mode;
  subject: { type: string; id: string };
}

export interface VersionedWorkflow {
  /** Grows with every change. */
  version: number;
  view: WorkflowView;
}

/** Undefined when there is none in `scope`. `workflowId` must be a uuid. */
export async function readWorkflow(sql: Sql, workflowId: string, scope: WorkflowScope): Promise<VersionedWorkflow | undefined> {
  const [row] = await sql.query<WorkflowRow>(readSql, [workflowId, scope.orgId, scope.mode, scope.subject.type, scope.subject.id]);
  return row === undefined ? undefined : { version: row.version, view: viewWorkflow(row) };
}

/** The same for code that has checked already whose it is. */
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

/** Newest first, from before the workflow `beforeId` (the last id of the page before); at most `limit`. */
export async function listWorkflows(sql: Sql, scope: WorkflowScope, page: { limit: number; beforeId?: string }): Promise<WorkflowPage> {
  const values = [page.beforeId ?? null, scope.orgId, scope.mode, scope.subject.type, scope.subject.id, page.limit + 1];
  const rows = await sql.query<WorkflowRow>(listSql, values);
  return { items: rows.slice(0, page.limit).map(viewWorkflow), hasMore: rows.length > page.limit };
}

const listSql = `SELECT ${viewColumns} FROM workflow WHERE ($1::uuid IS NULL OR id < $1::uuid) AND ${inScope} ORDER BY id DESC LIMIT $6::int`;
