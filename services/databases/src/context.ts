import type { Caller } from '@drydock/service/access/internal-token';
import type { QuotaRule } from '@drydock/service/access/org-quota';
import type { WorkflowContext } from '@drydock/workflow/http/workflow-context';
import type { DatabasesDatabase, Tx } from './database.store';
import type { Owner } from './databases/database.types';
import type { DatabasePasswords } from './databases/database-password';
import type { DatabaseReader } from './providers/database-provider';

/** What a handler may use: it looks at the world and never changes it. */
export interface HandlerContext extends WorkflowContext<Tx> {
  database: DatabasesDatabase;
  quota: QuotaRule;
  provider: DatabaseReader;
  passwords: DatabasePasswords;
}

export const ownerOf = ({ orgId, mode }: Caller): Owner => ({ orgId, mode });
