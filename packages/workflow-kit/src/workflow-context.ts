import type { Database } from '@drydock/service/database/sql';
import type { Pager } from '@drydock/service/http/paging';
import type { Dispatcher } from '@drydock/workflow/dispatcher';
import type { WorkflowListener } from '@drydock/workflow/listener';

/** What the handlers of a service with workflows have, beside what is its own. */
export interface WorkflowContext<Tx> {
  database: Database<Tx>;
  pager: Pager;
  /** What Postgres says about workflows, for those who watch one. */
  listener: WorkflowListener;
  /** Tells the worker of a new workflow; called after the commit. */
  ring: Dispatcher['ring'];
}
