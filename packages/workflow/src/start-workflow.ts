import type { Sql } from '@drydock/service/database/sql';
import { uuidv7 } from 'uuidv7';
import { z } from 'zod';
import type { StartableWorkflow } from './definition';
import { findUnfinished } from './find-unfinished';
import { workflowStarted } from './metrics';
import type { UnfinishedWorkflow } from './unfinished.types';

const startSchema = z.object({
  /** UUIDv7, for work that is known by the id of what it makes. Default: a fresh one. */
  id: z.uuidv7().optional(),
  kind: z.string().min(1),
  /** What must not be worked on twice at once, such as `site:<id>`. */
  resourceKey: z.string().min(1),
  subject: z.object({ type: z.string().min(1), id: z.string().min(1) }),
  orgId: z.uuid(),
  mode: z.enum(['live', 'sandbox']),
  /** JSON. The workflow's own schema reads it when it is claimed; a definition given along checks it now. */
  input: z.json(),
  /** Unclaimed by then it is cancelled with `start_by_passed`. */
  startBy: z.date().optional(),
  /** Null for work that the clock started. */
  actorKeyId: z.uuid().nullable(),
  requestId: z.string(),
  traceparent: z.string().optional(),
});

export interface WorkflowStart<Input = unknown> extends Omit<z.input<typeof startSchema>, 'input'> {
  input: Input;
  /** Where it is at hand: the input is checked by it, and the steps can be seen while the workflow is still queued. */
  definition?: StartableWorkflow<Input>;
}

export type WorkflowStarted =
  | { started: true; workflowId: string }
  /** The unfinished workflow that holds the resource. */
  | { started: false; workflowId: string; status: UnfinishedWorkflow['status'] };

/**
 * Accepts a workflow within the caller's transaction, or says which one is in the way. Nothing runs before the caller commits; then call `ring`.
 * Throws a ZodError when a value is not what it must be.
 */
export async function startWorkflow<Input>(sql: Sql, start: WorkflowStart<Input>): Promise<WorkflowStarted> {
  const { definition, ...rest } = start;
  const row = startSchema.parse({ ...rest, ...(definition === undefined ? {} : { input: definition.input.parse(rest.input) }) });
  const id = row.id ?? uuidv7();
  const stepNames = JSON.stringify(definition?.steps.map((step) => step.name) ?? []);
  const values = [
    id,
    row.kind,
    row.resourceKey,
    row.subject.type,
    row.subject.id,
    row.orgId,
    row.mode,
    JSON.stringify(row.input),
    row.actorKeyId,
  ];
  const rest2 = [row.requestId, row.traceparent ?? null, row.startBy?.toISOString() ?? null, stepNames, ringGraceSeconds];
  // The holder can finish between the two statements of one round; twice in a row it would have to be another one each time.
  for (let round = 0; round < 5; round += 1) {
    const inserted = await sql.query(insertSql, [...values, ...rest2]);
    if (inserted.length > 0) {
      workflowStarted(row.kind);
      return { started: true, workflowId: id };
    }
    const holder = await findUnfinished(sql, row.resourceKey);
    if (holder !== null) return { started: false, workflowId: holder.id, status: holder.status };
  }
  throw new Error(`no workflow could be started for ${row.resourceKey}, and none is in the way`);
}

/** The accepting process rings within milliseconds; the sweep steps in only when it did not. */
const ringGraceSeconds = 0.3;

const insertSql = `
  WITH accepted AS (
    INSERT INTO workflow (id, kind, resource_key, subject_type, subject_id, org_id, mode, input, actor_key_id, request_id, traceparent, start_by, dispatch_after)
    VALUES ($1::uuid, $2, $3, $4, $5, $6::uuid, $7, $8::jsonb, $9::uuid, $10, $11, $12::timestamptz, clock_timestamp() + make_interval(secs => $14::float8))
    ON CONFLICT (resource_key) WHERE status IN ('queued', 'running', 'needs_attention') DO NOTHING
    RETURNING id
  ), listed AS (
    INSERT INTO workflow_step (workflow_id, name, position)
    SELECT accepted.id, step.name, step.ordinality - 1 FROM accepted, jsonb_array_elements_text($13::jsonb) WITH ORDINALITY AS step(name, ordinality)
  )
  SELECT id FROM accepted`;
