import type { WorkflowView } from '@drydock/contracts/platform/workflows';
import type { CrashLook } from '@drydock/testing/crash-every-step';
import { until } from '@drydock/testing/wait';
import type { QueryResultRow } from 'pg';

interface Tables {
  rows<Row extends QueryResultRow>(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

interface Api extends Tables {
  call(method: string, path: string): Promise<{ json: unknown }>;
}

/** Finds the newest workflow about this subject, and of this kind if `kind` is given. Waits until there is one. */
export async function workflowOf(tables: Tables, subjectId: string, kind?: string): Promise<string> {
  const sql =
    'SELECT id FROM workflow WHERE subject_id = $1 AND ($2::text IS NULL OR kind = $2) ORDER BY id DESC LIMIT 1';
  const find = async () => (await tables.rows<{ id: string }>(sql, [subjectId, kind ?? null]))[0]?.id;
  return until(find, { everyMs: 10, what: `a ${kind ?? 'workflow'}` });
}

/**
 * Does what {@link workflowOf} does, for work that a request cancels if no worker takes it in time. The deadline is
 * removed, because a busy machine may delay the worker.
 */
export async function awaitedWorkflowOf(tables: Tables, subjectId: string, kind: string): Promise<string> {
  const workflowId = await workflowOf(tables, subjectId, kind);
  await tables.rows('UPDATE workflow SET start_by = NULL WHERE id = $1', [workflowId]);
  return workflowId;
}

/**
 * The state of a run as its owner reads it at `location`, and the number of unfinished workflows about the same
 * subject.
 */
export async function lookAt(api: Api, location: string): Promise<CrashLook> {
  const { status, steps, subject } = (await api.call('GET', location)).json as WorkflowView;
  return { status, steps, unfinished: await unfinishedOf(api, 'subject_id', subject.id) };
}

/** The state of a run that no endpoint shows, and the number of unfinished workflows on the same resource. */
export async function lookAtRecord(tables: Tables, workflowId: string): Promise<CrashLook> {
  const [row] = await tables.rows<{ status: string; resource_key: string }>(
    'SELECT status, resource_key FROM workflow WHERE id = $1',
    [workflowId],
  );
  const steps = await tables.rows<CrashLook['steps'][number]>(
    'SELECT name, status, attempts FROM workflow_step WHERE workflow_id = $1 ORDER BY position',
    [workflowId],
  );
  const unfinished = await unfinishedOf(tables, 'resource_key', row?.resource_key ?? '');
  return { status: row?.status ?? 'gone', steps, unfinished };
}

const unfinishedOf = async (tables: Tables, column: 'subject_id' | 'resource_key', value: string): Promise<number> =>
  (
    await tables.rows(
      `SELECT 1 FROM workflow WHERE ${column} = $1 AND status IN ('queued', 'running', 'needs_attention')`,
      [value],
    )
  ).length;
