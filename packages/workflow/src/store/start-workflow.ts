import type { Database, Sql } from '@drydock/service/database';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import type { StartableWorkflow, WorkflowRun } from '../definition/definition';
import type { UnfinishedWorkflow } from '../definition/refusal.rules';
import type { WorkflowProblem } from '../definition/step-error';
import { workflowFinished, workflowStarted } from './telemetry';
import { cancelWorkflow, insertWorkflow, isUnfinished } from './workflow-states';

const startSchema = z.object({
  /** UUIDv7, for work that is known by the id of the thing it makes. Default: a new one. */
  id: z.uuidv7().optional(),
  kind: z.string().min(1),
  /** A name that only one unfinished workflow may have, such as `site:<id>`. */
  resourceKey: z.string().min(1),
  subject: z.object({ type: z.string().min(1), id: z.string().min(1) }),
  orgId: z.uuid(),
  mode: z.enum(['live', 'sandbox']),
  /** JSON. The workflow's own schema reads it when it is claimed; a given definition checks it now. */
  input: z.json(),
  /** The time at which the workflow is cancelled with `start_by_passed` if no worker has claimed it. */
  startBy: z.date().optional(),
  /** Null for work that the clock started. */
  actorKeyId: z.uuid().nullable(),
  requestId: z.string(),
  traceparent: z.string().optional(),
  /**
   * The workflow's audit entry, in the service's outbox. `action`: resource and verb, such as `backup.restore`;
   * `target`: `/v1/sites/…`.
   */
  audit: z.object({ action: z.string().min(1), target: z.string().min(1) }).optional(),
});

export interface WorkflowStart<Input = unknown> extends Omit<z.input<typeof startSchema>, 'input'> {
  input: Input;
  /** If given, it checks the input, and the steps are visible while the workflow is still queued. */
  definition?: StartableWorkflow<Input>;
}

export type WorkflowStarted =
  | { started: true; workflowId: string }
  /** The unfinished workflow that has locked the resource. */
  | { started: false; workflowId: string; status: UnfinishedWorkflow['status'] };

/**
 * Accepts a workflow within the caller's transaction, or returns the unfinished one that holds the resource. Nothing
 * runs before the caller commits; then call `enqueue`. Throws a ZodError for a wrong value.
 */
export async function startWorkflow<Input>(sql: Sql, start: WorkflowStart<Input>): Promise<WorkflowStarted> {
  const { definition, ...rest } = start;
  const row = startSchema.parse({
    ...rest,
    ...(definition === undefined ? {} : { input: definition.input.parse(rest.input) }),
  });
  const id = row.id ?? uuidv7();
  const stepNames = definition?.steps.map((step) => step.name) ?? [];
  // A round fails only if the other workflow finishes between its two statements. For several rounds to fail, a new
  // workflow would have to take its place each time.
  for (let round = 0; round < 5; round += 1) {
    if (await insertWorkflow(sql, { ...row, id }, stepNames)) {
      workflowStarted(row.kind);
      return { started: true, workflowId: id };
    }
    const holder = await findUnfinished(sql, row.resourceKey);
    if (holder !== null) return { started: false, workflowId: holder.id, status: holder.status };
  }
  throw new Error(`no workflow could be started for ${row.resourceKey}, and none is in the way`);
}

/** The unfinished workflow that has locked the resource; a unique index allows only one. Null if it is free. */
export async function findUnfinished(sql: Sql, resourceKey: string): Promise<UnfinishedWorkflow | null> {
  const [holder] = await sql.query<UnfinishedWorkflow>(holderSql, [resourceKey]);
  return holder ?? null;
}

const holderSql = `SELECT id, kind, status FROM workflow WHERE resource_key = $1 AND ${isUnfinished}`;

/** The workflow's own `onEnd.failed`: it runs in the transaction that cancels. */
export type OnFailed<Tx> = (tx: Tx, run: WorkflowRun<unknown>, problem: WorkflowProblem, kind: string) => Promise<void>;

/**
 * Ends a workflow that nobody claimed by its `start_by` (Postgres' clock) as failed with `start_by_passed`; a claim and
 * this exclude each other. Returns false if it was claimed, has ended or still has time. The waiting request and the
 * sweep both call it; the first one cancels. `onFailed` must do the same as the definition's hook, which the sweep
 * calls by itself.
 */
export function cancelUnclaimed<Tx>(
  database: Database<Tx>,
  workflowId: string,
  onFailed?: OnFailed<Tx>,
): Promise<boolean> {
  return database.transaction(async (tx) => {
    const row = await cancelWorkflow(database.sql(tx), workflowId, startByPassed);
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
