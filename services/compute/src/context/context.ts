import type { Mode } from '@drydock/contracts/platform/values';
import type { QuotaRule } from '@drydock/service/http';
import { workflowsFor } from '@drydock/workflow/definition';
import type { WorkflowContext } from '@drydock/workflow/http';
import { type ComputeDriver, type ComputeReader, type Targets, targetOf } from '../providers/compute-provider';
import type { ComputeDatabase, Tx } from './database.store';

/** The context of the handlers. It has the providers' readers, so a handler can change nothing at a provider. */
export interface HandlerContext extends WorkflowContext<Tx> {
  database: ComputeDatabase;
  quota: QuotaRule;
  /** The most snapshots that a server may have. */
  snapshotsMax: number;
  targets: Targets<ComputeReader>;
}

/** The context of the workflow steps. It has the providers' drivers, which change machines. */
export interface WorkContext {
  database: ComputeDatabase;
  targets: Targets<ComputeDriver>;
  /** Seconds that a guest has to shut down after it was asked. */
  guestSeconds: number;
  /** Milliseconds that a rollback, power change or deletion takes at least if the sandbox server's name has `slow`. */
  slowMs: number;
  now(): Date;
}

export const defineWorkflow = workflowsFor<WorkContext, Tx>();

/** @throws if no provider is configured for `deployTarget`. Staff must then correct the configuration of this worker */
export function driverOf(
  { targets }: Pick<WorkContext, 'targets'>,
  { mode }: { mode: Mode },
  deployTarget: string,
): ComputeDriver {
  const target = targetOf(targets, { mode, deployTarget });
  if (target === undefined) throw new Error(`no provider is configured for ${deployTarget} (${mode})`);
  return target.provider;
}
