import type { Caller } from '@drydock/service/access/internal-token';
import type { QuotaRule } from '@drydock/service/access/org-quota';
import type { WorkflowContext } from '@drydock/workflow/http/workflow-context';
import type { DatabasesDatabase, Tx } from './database.store';
import type { Owner } from './databases/database.types';
import type { DatabasePasswords } from './databases/database-password';
import type { DatabaseReader } from './providers/database-provider';

/** The parts that a handler is given: they read the outside world and never change it. */
export interface HandlerContext extends WorkflowContext<Tx> {
  database: DatabasesDatabase;
  quota: QuotaRule;
  provider: DatabaseReader;
  passwords: DatabasePasswords;
}

export const ownerOf = ({ orgId, mode }: Caller): Owner => ({ orgId, mode });
