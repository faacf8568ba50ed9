import type { Mode } from '@drydock/contracts/platform/values';
import { workflowsFor } from '@drydock/workflow/definition';
import type { WorkflowContext } from '@drydock/workflow/http';
import { type ComputeDriver, type ComputeReader, type Targets, targetOf } from '../providers/compute-provider';
import type { ComputeDatabase, Tx } from './database.store';

/** The parts that a handler is given: they read the outside world and never change it. */
export interface HandlerContext extends WorkflowContext<Tx> {
  database: ComputeDatabase;
  targets: Targets<ComputeReader>;
}

/** The parts that workflow steps are given. They include the drivers, which handlers never see. */
export interface WorkContext {
  database: ComputeDatabase;
  targets: Targets<ComputeDriver>;
  /** Seconds that a guest has to shut down after it is asked. */
  guestSeconds: number;
  /** Milliseconds that an operation takes at least on a sandbox server that is slow on purpose. */
  slowMs: number;
  now(): Date;
}

export const defineWorkflow = workflowsFor<WorkContext, Tx>();

/** @throws when no provider is configured for `deployTarget`: staff have to correct the configuration of this worker */
export function driverOf(
  { targets }: Pick<WorkContext, 'targets'>,
  { mode }: { mode: Mode },
  deployTarget: string,
): ComputeDriver {
  const target = targetOf(targets, { mode, deployTarget });
  if (target === undefined) throw new Error(`no provider is configured for ${deployTarget} (${mode})`);
  return target.provider;
}
