import type { Caller } from '@drydock/service/access/internal-token';
import type { WorkflowContext } from '@drydock/workflow/http/workflow-context';
import type { ComputeDatabase, Tx } from './database.store';
import type { ComputeReader } from './providers/compute-provider';
import type { Owner } from './servers/server.types';
import type { Targets } from './servers/targets';

/** The parts that a handler is given: they read the outside world and never change it. */
export interface HandlerContext extends WorkflowContext<Tx> {
  database: ComputeDatabase;
  targets: Targets<ComputeReader>;
}

export const ownerOf = ({ orgId, mode }: Caller): Owner => ({ orgId, mode });
