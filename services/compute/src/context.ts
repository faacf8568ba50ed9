import type { Caller } from '@drydock/service-kit/internal-token';
import type { Pager } from '@drydock/service-kit/paging';
import type { Dispatcher } from '@drydock/workflow/dispatcher';
import type { WorkflowListener } from '@drydock/workflow/listener';
import type { ComputeDatabase } from './database.store';
import type { ComputeReader } from './providers/compute-provider';
import type { Owner } from './servers/server.types';
import type { Targets } from './servers/targets';

/** What a handler may use: it looks at the world and never changes it. */
export interface HandlerContext {
  database: ComputeDatabase;
  pager: Pager;
  targets: Targets<ComputeReader>;
  /** What Postgres says about workflows, for those who watch one. */
  listener: WorkflowListener;
  /** Tells the worker of a new workflow; called after the commit. */
  ring: Dispatcher['ring'];
}

export const ownerOf = ({ orgId, mode }: Caller): Owner => ({ orgId, mode });
