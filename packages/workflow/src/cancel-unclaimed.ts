import type { Mode } from '@drydock/contracts/platform/values';
import type { Database } from '@drydock/service/database/sql';
import type { WorkflowRun } from './definition';
import { workflowFinished } from './metrics';
import type { WorkflowProblem } from './step-error';

/** The workflow's own `onEnd.failed`: it runs in the transaction that cancels. */
export type OnFailed<Tx> = (tx: Tx, run: WorkflowRun<unknown>, problem: WorkflowProblem, kind: string) => Promise<void>;

/**
 * Ends a workflow that nobody claimed by its `start_by` (Postgres' clock) as failed with `start_by_passed`; a claim and this exclude each other.
 * Returns false when it was claimed, has ended or still has time. Whoever looks first calls it: the waiting request or the sweep.
 * `onFailed` must do what the definition's hook does; the sweep does so by itself.
 */
export function cancelUnclaimed<Tx>(database: Database<Tx>, workflowId: string, onFailed?: OnFailed<Tx>): Promise<boolean> {
  return database.transaction(async (tx) => {
    const [row] = await database.sql(tx).query<CancelledRow>(cancelSql, [workflowId, JSON.stringify({ code: startByPassed.code })]);
    if (row === undefined) return false;
    const run = {
      workflowId: row.id,
      orgId: row.org_id,
      mode: row.mode,
      subject: { type: row.subject_type, id: row.subject_id },
      input: row.input,
      actorKeyId: row.actor_key_id,
      requestId: row.request_id,
    };
    await onFailed?.(tx, run, startByPassed, row.kind);
    workflowFinished(row.kind, 'failed');
    return true;
  });
}

const startByPassed: WorkflowProblem = { code: 'start_by_passed' };

interface CancelledRow {
  id: string;
  kind: string;
  org_id: string;
  mode: Mode;
  subject_type: string;
  subject_id: string;
  input: unknown;
  actor_key_id: string | null;
  request_id: string;
}

const cancelSql = `
  UPDATE workflow SET status = 'failed', error = $2::jsonb, finished_at = clock_timestamp(), version = version + 1
  WHERE id = $1::uuid AND status = 'queued' AND fence = 0 AND start_by <= clock_timestamp()
  RETURNING id, kind, org_id, mode, subject_type, subject_id, input, actor_key_id, request_id`;
