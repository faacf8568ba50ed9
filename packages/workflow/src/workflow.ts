import type { z } from 'zod';
import type { SettleHooks, StepContext, StepDefinition, StepLimits, WorkflowDefinition } from './definition';

export interface StepSpec<Tx, Input, Outputs, Name extends string, Output> extends StepLimits {
  /** The effect. Runs again after a crash, so it must come to the same end when it has already happened, wholly or in part. */
  do(step: StepContext<Input, Outputs>): Promise<Output>;
  /** Takes the effect back. Runs for the step that failed too, whose effect may have happened wholly, in part or not at all; may run twice. */
  undo?(step: StepContext<Input, Outputs & { readonly [N in Name]?: Output }>): Promise<void>;
  /** Rows of the service that must change together with the checkpoint. Short, in one transaction with it. */
  commit?(tx: Tx, step: StepContext<Input, Outputs>, output: Output): Promise<void>;
}

export interface WorkflowBuilder<Tx, Input, Outputs> {
  /** Appends a step. `name` is human, stable and unique within the workflow: it is what the record knows it by. */
  step<const Name extends string, Output>(
    name: Name,
    spec: StepSpec<Tx, Input, Outputs, Name, Output>,
  ): WorkflowBuilder<Tx, Input, Outputs & { readonly [N in Name]: Output }>;
  /** Once every step before has succeeded nothing is undone any more: later trouble is retried, then waits for staff. */
  pointOfNoReturn(): WorkflowBuilder<Tx, Input, Outputs>;
  settle(hooks: SettleHooks<Tx, Input>): WorkflowBuilder<Tx, Input, Outputs>;
  /** Throws when it has no step, two of one name, or a name that cannot be part of a fault point. */
  build(): WorkflowDefinition<Tx, Input>;
}

/**
 * `workflow` for services whose stores call their transaction `Tx`:
 * `const workflow = workflowsIn<PrismaTx>()`. Hooks then get a typed `tx`.
 */
export function workflowsIn<Tx>() {
  return <Input>(head: { kind: string; input: z.ZodType<Input> }): WorkflowBuilder<Tx, Input, Record<never, never>> => {
    checkName(head.kind);
    return builder<Tx, Input, Record<never, never>>({ ...head, steps: [], pointOfNoReturn: Number.POSITIVE_INFINITY, settle: {} });
  };
}

/** A workflow whose hooks annotate their transaction themselves. */
export const workflow = workflowsIn<unknown>();

function builder<Tx, Input, Outputs>(soFar: WorkflowDefinition<Tx, Input>): WorkflowBuilder<Tx, Input, Outputs> {
  return {
    step: (name, spec) => {
      checkName(name);
      if (soFar.steps.some((step) => step.name === name)) throw new Error(`${soFar.kind} has two steps named ${name}`);
      // Here the types of the neighbours are forgotten: what a step reads is what the steps before it wrote, by construction.
      const forgetful: Omit<StepDefinition<Tx>, 'name' | keyof StepLimits> & StepLimits = spec;
      return builder({ ...soFar, steps: [...soFar.steps, { ...stepDefaults, ...forgetful, name }] });
    },
    pointOfNoReturn: () => builder({ ...soFar, pointOfNoReturn: soFar.steps.length }),
    settle: (hooks) => builder({ ...soFar, settle: hooks }),
    build: () => {
      if (soFar.steps.length === 0) throw new Error(`${soFar.kind} has no steps`);
      return { ...soFar, pointOfNoReturn: Math.min(soFar.pointOfNoReturn, soFar.steps.length) };
    },
  };
}

/** Five failures with doubling pauses span about a minute: longer than a provider's restart, shorter than a customer's patience. */
const stepDefaults = { timeoutSeconds: 300, attemptsMax: 5, weight: 1 };

/** Names are parts of fault points, span names and file names. */
function checkName(name: string): void {
  if (!/^[a-z][a-z0-9_]*$/.test(name)) throw new Error(`${name} must be lower case letters, digits and underscores`);
}
