import type { WorkflowContext } from '@drydock/workflow/http';
import type { ComputeReader } from '../providers/compute-provider';
import type { Targets } from '../providers/targets';
import type { ComputeDatabase, Tx } from './database.store';

/** The parts that a handler is given: they read the outside world and never change it. */
export interface HandlerContext extends WorkflowContext<Tx> {
  database: ComputeDatabase;
  targets: Targets<ComputeReader>;
}
