import type { Mode } from '@drydock/contracts/platform/values';
import type { WorkflowProblem } from '../definition/step-error';

export type WorkflowStatus = 'queued' | 'running' | 'succeeded' | 'failed' | 'needs_attention';

/**
 * The direction of a run: forward through the steps, back through them after a failure (`undo`), or directly to the end
 * after staff have abandoned the workflow (`abandon`).
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
  /** Seconds since the step first started, or first started after a retry by staff. 0 if it has not started. */
  age_seconds: number;
}

/** The workflow and the fence of a claim. Every write under a claim names both. */
export interface ClaimKey {
  id: string;
  kind: string;
  fence: string;
}

/** A workflow that this worker has claimed until its lease ends. `steps` are as they were just before the claim. */
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
  /**
   * The number of successive earlier claims whose lease expired, mostly because the worker died. A checkpoint sets the
   * number to 0.
   */
  consecutive_crashes: number;
  /** The number of failed attempts to write the end. */
  end_failures: number;
  progress: number;
  error: Omit<WorkflowProblem, 'internal'> | null;
  error_internal: string | null;
  /** Seconds from the moment when the workflow was due to the claim. */
  delay_seconds: number;
  /** Seconds from the acceptance of the workflow to the claim. */
  age_seconds: number;
  /** Seconds since the undo began or staff last retried the undo. Of use only while the workflow is being undone. */
  undoing_seconds: number;
  steps: StepRow[];
}

export interface ClaimLimits {
  leaseSeconds: number;
  crashesMax: number;
  /** The names of the steps of every kind that this worker can run, as JSON. */
  stepNamesByKind: string;
}

/** The state in which a claim leaves its workflow for the next claim. */
export interface Release {
  /** Seconds until the workflow is due again. */
  afterSeconds: number;
  /** The part that has failed, which uses up one of its attempts. Absent if no attempt is used up. */
  failed?: { what: 'step' | 'undo'; step: string } | { what: 'end' };
}

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

/** The part of a cancelled workflow that its hook needs. */
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

/**
 * How the handling of a job ended, for logs and traces. `ignored`: the job started nothing, or waits in the worker's
 * memory for a slot. `released`: the workflow continues later. `left`: the worker stopped without giving the claim
 * back, for example because the claim was lost.
 */
export type RunEnd = 'ignored' | 'succeeded' | 'failed' | 'needs_attention' | 'released' | 'left';
