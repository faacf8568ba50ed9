import type { Mode } from '@drydock/contracts/platform/values';
import { workflowsFor } from '@drydock/workflow/definition';
import type { ComputeDriver } from '../providers/compute-provider';
import { type Targets, targetOf } from '../providers/targets';
import type { ComputeDatabase, Tx } from './database.store';

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
