import type { Mode } from '@drydock/contracts/platform/values';
import type { WorkflowProblem } from '../definition/step-error';

export type WorkflowStatus = 'queued' | 'running' | 'succeeded' | 'failed' | 'needs_attention';

/**
 * Forward through the steps, back through them after a failure (`undo`), or straight to the end because staff gave up
 * (`abandon`).
 */
export type Direction = 'forward' | 'undo' | 'abandon';

export type StepStatus = 'pending' | 'running' | 'succeeded' | 'failed' | 'undone';

export interface StepRow {
  name: string;
  status: StepStatus;
  attempts: number;
  failures: number;
  undo_failures: number;
  output: unknown;
  undone: boolean;
  /** Seconds since the first start of the step; 0 if there is no step. */
  age_seconds: number;
}

/** The claim that every write of a worker must present: the workflow, and the fence under which it works. */
export interface ClaimKey {
  id: string;
  kind: string;
  fence: string;
}

/** A workflow that is ours until its lease ends. `steps` are as they were just before the claim. */
export interface Claim extends ClaimKey {
  org_id: string;
  mode: Mode;
  subject_type: string;
  subject_id: string;
  input: unknown;
  actor_key_id: string | null;
  request_id: string;
  traceparent: string | null;
  direction: Direction;
  /** Earlier claims in a row whose worker died without a checkpoint. */
  consecutive_crashes: number;
  /** How often the end could not be written. */
  end_failures: number;
  progress: number;
  error: Omit<WorkflowProblem, 'internal'> | null;
  error_internal: string | null;
  /** Seconds from due to claimed. */
  delay_seconds: number;
  /** Seconds from accepted to claimed. */
  age_seconds: number;
  /** Seconds since a step failed for good, or since staff had its undo tried again; 0 while nothing is being undone. */
  undoing_seconds: number;
  steps: StepRow[];
}

export interface ClaimLimits {
  leaseSeconds: number;
  /** Workers in a row that may die during a workflow before it counts as poison. */
  crashesMax: number;
  /** Step names of every kind that this worker knows, as JSON. */
  stepNamesByKind: string;
}

/** The state that a released claim leaves for the next one. */
export interface Release {
  /** Seconds until the workflow is due again. */
  afterSeconds: number;
  /** The failed part, which is counted against its budget. Absent: nothing failed. */
  failed?: { what: 'step' | 'undo'; step: string } | { what: 'end' };
}

/** A row of `workflow` as accepted. */
export interface NewWorkflow {
  id: string;
  kind: string;
  resourceKey: string;
  subject: { type: string; id: string };
  orgId: string;
  mode: Mode;
  input: unknown;
  actorKeyId: string | null;
  requestId: string;
  traceparent?: string | undefined;
  startBy?: Date | undefined;
  audit?: { action: string; target: string } | undefined;
}

/** The part of a cancelled workflow that its hook gets. */
export interface CancelledRow {
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

/** The end of a claim, for the log, the span and the tests. */
export type RunEnd = 'ignored' | 'succeeded' | 'failed' | 'needs_attention' | 'released' | 'left';
