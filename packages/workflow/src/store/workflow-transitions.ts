import type { EventType } from '@drydock/contracts/keys/events';
import { subjectPaths } from '@drydock/contracts/platform/workflows';
import { uuidv7Sql } from '@drydock/service/database';
import type { Direction, StepStatus, WorkflowStatus } from './claim.types';

// The state machine of a workflow: the table of allowed transitions, and the event that a new state causes.
// workflow-states.ts has the statements.
//
//   none ──insert──▶ queued ──claim──▶ running ──complete, release, claim──▶ running
//                      ▲  │               │
//        retry, abandon│  │cancel         ├──succeed──▶ succeeded
//                      │  ▼               ├──fail─────▶ failed
//                      │ failed           │
//                      └──needs_attention◀┘ park

export type WorkflowState = `${WorkflowStatus} ${Direction | '*'}`;
type Change<State extends string> = `${State | 'none'} -> ${State}`;

/** The changes of a workflow that each statement makes. `*` on both sides stands for any direction, which is kept. */
export const workflowTransitions = {
  insertWorkflow: ['none -> queued forward'],
  claimWorkflow: ['queued * -> running *', 'running * -> running *'],
  renewLease: ['running * -> running *'],
  reportProgress: ['running * -> running *'],
  relistSteps: ['running forward -> running forward'],
  beginStep: ['running forward -> running forward'],
  completeStep: ['running forward -> running forward'],
  beginUndo: ['running forward -> running undo'],
  completeUndo: ['running undo -> running undo'],
  releaseClaim: ['running * -> running *'],
  succeedWorkflow: ['running forward -> succeeded forward'],
  failWorkflow: ['running undo -> failed undo', 'running abandon -> failed abandon'],
  parkWorkflow: ['running * -> needs_attention *'],
  retryWorkflow: ['needs_attention * -> queued *'],
  abandonWorkflow: ['needs_attention * -> queued abandon'],
  cancelWorkflow: ['queued forward -> failed forward'],
} as const satisfies Record<string, readonly Change<WorkflowState>[]>;

export type Statement = keyof typeof workflowTransitions;

/** The changes of a step's status that each statement makes. A statement that is not listed changes no status. */
export const stepTransitions = {
  insertWorkflow: ['none -> pending'],
  claimWorkflow: ['none -> pending', 'none -> running', 'pending -> running', 'running -> running'],
  relistSteps: ['none -> pending', 'running -> pending', 'pending -> gone', 'running -> gone'],
  beginStep: ['pending -> running'],
  completeStep: ['running -> succeeded', 'pending -> running'],
  beginUndo: ['running -> failed'],
  completeUndo: ['succeeded -> undone', 'failed -> failed'],
  parkWorkflow: ['running -> failed'],
  retryWorkflow: ['failed -> pending'],
} as const satisfies Partial<Record<Statement, readonly Change<StepStatus | 'gone'>[]>>;

/** The condition that a workflow is in a state that the statement may change. */
export function workflowIsIn(statement: Statement): string {
  const states = workflowTransitions[statement].map((change) => {
    const [status, direction] = change.split(' ');
    return `workflow.status = '${status}'${direction === '*' ? '' : ` AND workflow.direction = '${direction}'`}`;
  });
  return `(${states.join(' OR ')})`;
}

/** The condition that a step is in a state from which the statement changes it to `to`. */
export function stepIsIn(statement: keyof typeof stepTransitions, to: StepStatus | 'gone'): string {
  const changes = stepTransitions[statement].map((change) => change.split(' -> '));
  const states = changes.filter(([from, leadsTo]) => leadsTo === to && from !== 'none').map(([from]) => `'${from}'`);
  return `workflow_step.status IN (${states.join(', ')})`;
}

const subjectPathSql = Object.entries(subjectPaths)
  .map(([type, path]) => `WHEN '${type}' THEN '${path}'`)
  .join(' ');

/** The columns of a workflow that {@link telling} needs. */
export const toldColumns =
  'workflow.id, kind, workflow.org_id, workflow.mode, subject_type, subject_id, actor_key_id, request_id, error';

/**
 * SQL that writes the event of a state in the same statement as the state, so that a state is never written without its
 * event. `reached` names a CTE whose rows have {@link toldColumns}. The platform's own workflows have no events.
 */
export const telling = (type: EventType, reached: string): string => `told AS (
    INSERT INTO workflow_event (id, type, org_id, mode, resource, actor_key_id,
      workflow_id, kind, request_id, error, at)
    SELECT ${uuidv7Sql}, '${type}', org_id, mode, CASE subject_type ${subjectPathSql} END || subject_id, actor_key_id,
      id, kind, request_id, error, clock_timestamp()
    FROM ${reached} WHERE subject_type IN (${Object.keys(subjectPaths)
      .map((type) => `'${type}'`)
      .join(', ')})
  )`;
