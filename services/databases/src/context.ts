import type { Caller } from '@drydock/service-kit/internal-token';
import type { Pager } from '@drydock/service-kit/paging';
import type { Dispatcher } from '@drydock/workflow/dispatcher';
import type { WorkflowListener } from '@drydock/workflow/listener';
import type { DatabasesDatabase } from './database.store';
import type { Owner } from './databases/database.types';
import type { DatabasePasswords } from './databases/database-password';
import type { DatabaseReader } from './providers/database-provider';

/** What a handler may use: it looks at the world and never changes it. */
export interface HandlerContext {
  database: DatabasesDatabase;
  pager: Pager;
  provider: DatabaseReader;
  passwords: DatabasePasswords;
  /** What Postgres says about workflows, for those who watch one. */
  listener: WorkflowListener;
  /** Tells the worker of a new workflow; called after the commit. */
  ring: Dispatcher['ring'];
}

export const ownerOf = ({ orgId, mode }: Caller): Owner => ({ orgId, mode });
