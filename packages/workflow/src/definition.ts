import type { Mode } from '@drydock/contracts/values';
import type { z } from 'zod';
import type { Log } from './log';
import type { WorkflowProblem } from './step-error';

/** Which operation this is; the same for all of its steps. */
export interface WorkflowRun<Input> {
  workflowId: string;
  orgId: string;
  mode: Mode;
  subject: { type: string; id: string };
  input: Input;
  actorKeyId: string | null;
  requestId: string;
}

/** What a step is given. */
export interface StepContext<Input, Outputs> extends WorkflowRun<Input> {
  /** The outputs of the steps before, as they were checkpointed (JSON). */
  outputs: Outputs;
  /** A bigint in decimal. Give it to every target that can refuse an older one. */
  fence: string;
  /** From 1. Counts every start, those that died too. */
  attempt: number;
  /** Aborted when the lease is lost, the time is up or the process ends: stop at the next safe place and reject. */
  signal: AbortSignal;
  /** How far this step is, 0 to 1. Cheap: written at most twice a second. */
  progress(fraction: number): void;
  log: Log;
}

export interface StepLimits {
  /** Seconds for one attempt; past that its signal is aborted and the attempt has failed. Default 300. */
  timeoutSeconds?: number;
  /** Failures that may pass, until the step has failed for good. Dying with its process is none. Default 5. */
  attemptsMax?: number;
  /** Share of the progress bar, relative to the other steps. Default 1. */
  weight?: number;
}

/** A step with the types of its neighbours forgotten, as the runner sees it. */
export interface StepDefinition<Tx> extends Required<StepLimits> {
  name: string;
  do(step: StepContext<unknown, unknown>): Promise<unknown>;
  undo?(step: StepContext<unknown, unknown>): Promise<void>;
  commit?(tx: Tx, step: StepContext<unknown, unknown>, output: unknown): Promise<void>;
}

/** What a service does in the very transaction that ends a workflow. */
export interface SettleHooks<Tx, Input> {
  succeeded?(tx: Tx, run: WorkflowRun<Input>): Promise<void>;
  failed?(tx: Tx, run: WorkflowRun<Input>, problem: WorkflowProblem): Promise<void>;
}

/** A workflow as data. Made by {@link workflow}. */
export interface WorkflowDefinition<Tx, Input = unknown> {
  kind: string;
  input: z.ZodType<Input>;
  steps: readonly StepDefinition<Tx>[];
  /** How many steps may be undone; from the step with this index on the runner only goes forward. */
  pointOfNoReturn: number;
  settle: SettleHooks<Tx, Input>;
}
