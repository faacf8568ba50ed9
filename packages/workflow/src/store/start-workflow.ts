import type { Database, Sql } from '@drydock/service/database';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import type { StartableWorkflow, WorkflowRun } from '../definition/definition';
import type { UnfinishedWorkflow } from '../definition/refusal.rules';
import type { WorkflowProblem } from '../definition/step-error';
import { workflowFinished, workflowStarted } from './telemetry';
import { cancelWorkflow, insertWorkflow, isUnfinished } from './workflow-states';

const startSchema = z.object({
  /** The workflow's id; by default a new one. Work that makes a resource may use the resource's id. */
  id: z.uuidv7().optional(),
  kind: z.string().min(1),
  /** A name that only one unfinished workflow may have, such as `site:<id>`. */
  resourceKey: z.string().min(1),
  subject: z.object({ type: z.string().min(1), id: z.string().min(1) }),
  orgId: z.uuid(),
  mode: z.enum(['live', 'sandbox']),
  /**
   * The input as JSON. The workflow's own schema parses it when the workflow is claimed. With `definition` the input is
   * also checked now.
   */
  input: z.json(),
  /** The time at which the workflow is cancelled with `start_by_passed` if no worker has claimed it. */
  startBy: z.date().optional(),
  /** The key of the caller; null if no caller has asked for the workflow, for example if a schedule has started it. */
  actorKeyId: z.uuid().nullable(),
  requestId: z.string(),
  traceparent: z.string().optional(),
  /**
   * The workflow's audit entry in the service's outbox. `action` is a resource and a verb, such as `backup.restore`.
   * `target` is a path, such as `/v1/sites/…`.
   */
  audit: z.object({ action: z.string().min(1), target: z.string().min(1) }).optional(),
});

export interface WorkflowStart<Input = unknown> extends Omit<z.input<typeof startSchema>, 'input'> {
  input: Input;
  /**
   * The workflow's definition. With a definition the input is checked now, and the steps are visible while the workflow
   * is queued.
   */
  definition?: StartableWorkflow<Input>;
}

export type WorkflowStarted =
  | { started: true; workflowId: string }
  /** The unfinished workflow that has locked the resource. */
  | { started: false; workflowId: string; status: UnfinishedWorkflow['status'] };

/**
 * Accepts a workflow in the caller's transaction. If another unfinished workflow has locked the resource, returns the
 * id of that workflow. Nothing runs before the caller commits. After the commit the caller may enqueue a job. Throws a
 * ZodError for an invalid value.
 */
export async function startWorkflow<Input>(sql: Sql, start: WorkflowStart<Input>): Promise<WorkflowStarted> {
  const { definition, ...rest } = start;
  const row = startSchema.parse({
    ...rest,
    ...(definition === undefined ? {} : { input: definition.input.parse(rest.input) }),
  });
  const id = row.id ?? uuidv7();
  const stepNames = definition?.steps.map((step) => step.name) ?? [];
  // A round fails only if the workflow that has locked the resource ends between the two statements. Several rounds
  // fail only if a new workflow locks and unlocks the resource each time.
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

/** The unfinished workflow that has locked the resource; a unique index allows only one. Null if there is none. */
export async function findUnfinished(sql: Sql, resourceKey: string): Promise<UnfinishedWorkflow | null> {
  const [holder] = await sql.query<UnfinishedWorkflow>(holderSql, [resourceKey]);
  return holder ?? null;
}

const holderSql = `SELECT id, kind, status FROM workflow WHERE resource_key = $1 AND ${isUnfinished}`;

/** The hook `onEnd.failed` of the workflow. It runs in the transaction that cancels the workflow. */
export type OnFailed<Tx> = (tx: Tx, run: WorkflowRun<unknown>, problem: WorkflowProblem, kind: string) => Promise<void>;

/**
 * Ends a workflow that nobody has claimed by its `start_by` (Postgres' clock) as failed with `start_by_passed`. Either
 * this call or a claim succeeds, never both. Returns false if the workflow was claimed, has ended or still has time.
 * The waiting request and the sweep both call this function, and the first call cancels. `onFailed` must do the same as
 * the definition's hook, which the sweep passes.
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
