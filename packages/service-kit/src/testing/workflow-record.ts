import type { CrashLook } from '@drydock/test-kit/crash-every-step';
import { until } from '@drydock/test-kit/wait';
import { viewOf } from './follow-workflow';
import type { ServiceApi } from './service-api';

/** The newest workflow about this subject, of this kind where one is named; waits until the request has got as far as starting it. */
export async function workflowOf(api: ServiceApi, subjectId: string, kind?: string): Promise<string> {
  const sql = 'SELECT id FROM workflow WHERE subject_id = $1 AND ($2::text IS NULL OR kind = $2) ORDER BY id DESC LIMIT 1';
  const find = async () => (await api.rows<{ id: string }>(sql, [subjectId, kind ?? null]))[0]?.id;
  return until(find, { timeoutMs: 20_000, everyMs: 10, what: `a ${kind ?? 'workflow'}` });
}

/** Entries of the audit log that this workflow has written. */
export const auditRowsOf = async (api: ServiceApi, workflowId: string): Promise<number> =>
  (await api.rows('SELECT 1 FROM audit_outbox WHERE workflow_id = $1', [workflowId])).length;

/** What the audit log says was done to `target`, the path of a thing, oldest first. */
export const auditedOf = async (api: ServiceApi, target: string): Promise<string[]> =>
  (await api.rows<{ action: string }>('SELECT action FROM audit_outbox WHERE target = $1 ORDER BY seq', [target])).map(
    ({ action }) => action,
  );

/** A run as its owner reads it at `location`, and how many workflows about the same subject have not ended. */
export async function lookAt(api: ServiceApi, location: string): Promise<CrashLook> {
  const { status, steps, subject } = await viewOf({ api }, location);
  return { status, steps, unfinished: await unfinishedOf(api, 'subject_id', subject.id) };
}

/** A run that no endpoint shows, and how many workflows on the same resource have not ended. */
export async function lookAtRecord(api: ServiceApi, workflowId: string): Promise<CrashLook> {
  const [row] = await api.rows<{ status: string; resource_key: string }>('SELECT status, resource_key FROM workflow WHERE id = $1', [
    workflowId,
  ]);
  const steps = await api.rows<CrashLook['steps'][number]>(
    'SELECT name, status, attempts FROM workflow_step WHERE workflow_id = $1 ORDER BY position',
    [workflowId],
  );
  const unfinished = await unfinishedOf(api, 'resource_key', row?.resource_key ?? '');
  return { status: row?.status ?? 'gone', steps, unfinished };
}

const unfinishedOf = async (api: ServiceApi, column: 'subject_id' | 'resource_key', value: string): Promise<number> =>
  (await api.rows(`SELECT 1 FROM workflow WHERE ${column} = $1 AND status IN ('queued', 'running', 'needs_attention')`, [value])).length;
