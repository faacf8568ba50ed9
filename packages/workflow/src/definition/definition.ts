import type { Mode } from '@drydock/contracts/platform/values';
import type { z } from 'zod';
import type { WorkflowProblem } from './step-error';

/** The facts about a workflow that all of its steps share. */
export interface WorkflowRun<Input> {
  workflowId: string;
  orgId: string;
  mode: Mode;
  subject: { type: string; id: string };
  input: Input;
  actorKeyId: string | null;
  requestId: string;
}

export interface StepContext<Input, Outputs> extends WorkflowRun<Input> {
  /** The outputs of the earlier steps, as their checkpoints contain them (JSON). */
  outputs: Outputs;
  /** The claim's fence, a bigint in decimal. A step passes it to every target that can refuse an older fence. */
  fence: string;
  /**
   * The number of the attempt, from 1. For `run` it counts every start of the step, including starts whose worker died.
   * For `undo` it is one more than the number of failed attempts.
   */
  attempt: number;
  /**
   * The number of earlier attempts that have failed and count against `attemptsMax`. Unlike `attempt` it leaves out
   * attempts that were postponed, attempts whose worker died or was stopped, and attempts that could not reach a
   * dependency during a short outage. For `undo` it counts failures of the undo.
   */
  failures: number;
  /**
   * Aborted when the lease is lost, the step's `timeoutSeconds` are over, or the process begins to stop. The step must
   * then stop at the next safe place and reject.
   */
  signal: AbortSignal;
  /**
   * Reports the progress of this step, from 0 to 1. May be called often, because at most two calls a second are
   * written.
   */
  progress(fraction: number): void;
  log: Log;
}

export interface StepLimits {
  /**
   * The longest that one attempt may take, in seconds. After that its signal is aborted, and the attempt fails unless
   * it still completes within a few seconds. Default 300.
   */
  timeoutSeconds?: number;
  /**
   * The step fails for good after this number of attempts with a transient failure. Attempts that {@link
   * StepContext.failures} leaves out do not count. Default 5.
   */
  attemptsMax?: number;
  /** The step's share of the workflow's progress, relative to the other steps. Default 1. */
  weight?: number;
}

/**
 * A step as the runner sees it, without the types of its input and of the other steps' outputs. Every step is given the
 * `context` of the worker's options.
 */
export interface StepDefinition<Context, Tx> extends Required<StepLimits> {
  name: string;
  /**
   * For a step that was added to the code after a run had passed its position: true if the run continues without the
   * step, false if the run waits for staff.
   */
  skipIfPassed: boolean;
  run: (step: StepContext<unknown, unknown>, context: Context) => Promise<unknown>;
  undo?: ((step: StepContext<unknown, unknown>, context: Context) => Promise<void>) | undefined;
  commit?:
    | ((tx: Tx, step: StepContext<unknown, unknown>, output: unknown, context: Context) => Promise<void>)
    | undefined;
}

/**
 * Hooks by which the service writes its own rows in the transaction that ends a workflow, or that parks it for staff.
 */
export interface EndHooks<Context, Tx, Input> {
  /**
   * Called each time the workflow is parked for staff, also when a retry by staff fails. The input is unchecked, so it
   * can violate the workflow's schema.
   */
  parked?(tx: Tx, run: WorkflowRun<unknown>, context: Context): Promise<void>;
  succeeded?(tx: Tx, run: WorkflowRun<Input>, context: Context): Promise<void>;
  failed?(tx: Tx, run: WorkflowRun<Input>, problem: WorkflowProblem, context: Context): Promise<void>;
}

/** The part of a workflow that a request needs to start one. */
export interface StartableWorkflow<Input> {
  kind: string;
  input: z.ZodType<Input>;
  steps: readonly { name: string }[];
}

/**
 * A workflow as a plain value. Requests start the workflow, and a worker runs it with the worker's context. A
 * definition is made by {@link WorkflowBuilder.build}.
 */
export interface WorkflowDefinition<Context, Tx, Input = unknown> extends StartableWorkflow<Input> {
  steps: readonly StepDefinition<Context, Tx>[];
  /**
   * True for a workflow that a schedule starts every minute or so and that mostly finds nothing to do. Its traces are
   * sampled as rarely as traces of reads, and its steps are logged at debug.
   */
  isRoutine?: boolean;
  /**
   * The index of the first step after the point of no return. From this step on the runner only goes forward, unless a
   * step throws `conclude`.
   */
  pointOfNoReturn: number;
  onEnd: EndHooks<Context, Tx, unknown>;
}

interface StepEffects<Context, Tx, Input, Outputs, Name extends string, Output> extends StepLimits {
  /**
   * Does the work of the step. After a crash `run` is called again, so its result must be the same if the work is
   * already done, wholly or in part.
   */
  run(step: StepContext<Input, Outputs>, context: Context): Promise<Output>;
  /**
   * Undoes the work of the step. `undo` is also called for the failed step, whose work may be done wholly, in part or
   * not at all. `undo` may run twice.
   */
  undo?(step: StepContext<Input, Outputs & { readonly [N in Name]?: Output }>, context: Context): Promise<void>;
  /**
   * Writes rows of the service that must change together with the checkpoint, in the same transaction. `commit` must be
   * quick, because the transaction has locked the workflow's row.
   */
  commit?(tx: Tx, step: StepContext<Input, Outputs>, output: Output, context: Context): Promise<void>;
}

export interface WorkflowBuilder<Context, Tx, Input, Outputs> {
  /**
   * Appends a step. `name` is shown to people. It must be unique in the workflow and never change, because the record
   * identifies the step by it. Throws if another step has the name, or if the name cannot be part of a fault point.
   * `skipIfPassed` is for a step that is inserted between existing ones. With it, a run that has already passed the new
   * position continues without the step, so later steps must not need the step's output. Without it, a run that has
   * passed the position waits for staff.
   */
  step<const Name extends string, Output, Skip extends boolean = false>(
    name: Name,
    spec: StepEffects<Context, Tx, Input, Outputs, Name, Output> & { skipIfPassed?: Skip },
  ): WorkflowBuilder<
    Context,
    Tx,
    Input,
    Outputs & (Skip extends true ? { readonly [N in Name]?: Output } : { readonly [N in Name]: Output })
  >;
  /**
   * Once every step before this point has succeeded, nothing is undone any more. If a later step fails for good, the
   * workflow waits for staff. If a step throws `conclude`, the workflow is undone even after this point.
   */
  pointOfNoReturn(): WorkflowBuilder<Context, Tx, Input, Outputs>;
  onEnd(hooks: EndHooks<Context, Tx, Input>): WorkflowBuilder<Context, Tx, Input, Outputs>;
  /** Throws if the workflow has no step. */
  build(): WorkflowDefinition<Context, Tx, Input>;
}

/**
 * Makes the function by which a service defines its workflows: `const defineWorkflow = workflowsFor<WorkContext,
 * Tx>()`. `Context` is the type of the context that the service's worker gives to every step. `Tx` is the type of a
 * transaction of the service's stores.
 */
export function workflowsFor<Context, Tx>() {
  return <Input>(
    named: Pick<WorkflowDefinition<Context, Tx, Input>, 'kind' | 'input' | 'isRoutine'>,
  ): WorkflowBuilder<Context, Tx, Input, Record<never, never>> => {
    checkName(named.kind);
    return builder<Context, Tx, Input, Record<never, never>>({
      ...named,
      steps: [],
      pointOfNoReturn: Number.POSITIVE_INFINITY,
      onEnd: {},
    });
  };
}

function builder<Context, Tx, Input, Outputs>(
  soFar: WorkflowDefinition<Context, Tx, Input>,
): WorkflowBuilder<Context, Tx, Input, Outputs> {
  return {
    step: (name, spec) => {
      checkName(name);
      if (soFar.steps.some((step) => step.name === name)) throw new Error(`${soFar.kind} has two steps named ${name}`);
      // The types of the earlier steps' outputs are dropped here. The builder has checked them, so a step reads only
      // what earlier steps have written.
      const forgetful: ForgetfulStep<Context, Tx> = spec;
      return builder({ ...soFar, steps: [...soFar.steps, { ...stepDefaults, ...forgetful, name }] });
    },
    pointOfNoReturn: () => builder({ ...soFar, pointOfNoReturn: soFar.steps.length }),
    onEnd: (hooks) => builder({ ...soFar, onEnd: hooks }),
    build: () => {
      if (soFar.steps.length === 0) throw new Error(`${soFar.kind} has no steps`);
      return { ...soFar, pointOfNoReturn: Math.min(soFar.pointOfNoReturn, soFar.steps.length) };
    },
  };
}

/**
 * A step with its types dropped. The members are methods, because TypeScript accepts a method with more specific
 * parameters where it refuses a function property.
 */
interface ForgetfulStep<Context, Tx> extends StepLimits {
  skipIfPassed?: boolean;
  run(step: StepContext<unknown, unknown>, context: Context): Promise<unknown>;
  undo?(step: StepContext<unknown, unknown>, context: Context): Promise<void>;
  commit?(tx: Tx, step: StepContext<unknown, unknown>, output: unknown, context: Context): Promise<void>;
}

/**
 * The four pauses between five attempts last at most 32 s together (`backoffSeconds`), which a customer can wait for.
 * An attempt that cannot reach a dependency uses up none of the five while the outage is short, unless the attempt took
 * minutes (`isOutOfReach`).
 */
const stepDefaults = { timeoutSeconds: 300, attemptsMax: 5, weight: 1, skipIfPassed: false };

/** Throws unless the name can be part of a fault point, of a span's name and of a file's name. */
function checkName(name: string): void {
  if (!/^[a-z][a-z0-9_]*$/.test(name)) throw new Error(`${name} must be lower case letters, digits and underscores`);
}

/**
 * Tells a target for which claim of which workflow it is called. Site and database agents refuse a fence that is lower
 * than the highest fence they have seen for the same resource.
 */
export interface FencedCall {
  fence: string;
  workflowId: string;
  /** Aborted when the target should stop at the next safe place. */
  signal: AbortSignal;
}

export interface FencedCallWithProgress extends FencedCall {
  /** Reports the progress of the call, from 0 to 1. */
  progress(fraction: number): void;
}

export const fencedCall = ({
  workflowId,
  fence,
  signal,
}: Pick<StepContext<unknown, unknown>, keyof FencedCall>): FencedCall => ({
  workflowId,
  fence,
  signal,
});

type Write = (fields: object, message: string) => void;

/** The methods of a pino logger that the engine uses. */
export interface Log {
  debug: Write;
  info: Write;
  warn: Write;
  error: Write;
}

export function logWith(log: Log, fields: object): Log {
  const write =
    (level: keyof Log): Write =>
    (more, message) =>
      log[level]({ ...fields, ...more }, message);
  return { debug: write('debug'), info: write('info'), warn: write('warn'), error: write('error') };
}

/**
 * The name of a fault point of a step: before or after its work, after its checkpoint, or before or after its undo.
 * Tests let the step fail or the process die there.
 */
export const stepPoint = (
  kind: string,
  step: string,
  where: 'before' | 'after_effect' | 'after_checkpoint' | 'undo_before' | 'undo_after_effect',
): string => `${kind}.${step}.${where}`;

/**
 * The fault points outside the steps of a workflow. The points named `dispatch` are in the accepting process and in the
 * sweep.
 */
export const enginePoints = {
  finishBefore: 'finish.before',
  dispatchBefore: 'dispatch.before',
  dispatchAfter: 'dispatch.after',
} as const;
