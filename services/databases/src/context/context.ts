import type { QuotaRule } from '@drydock/service/http';
import type { WorkflowContext } from '@drydock/workflow/http';
import type { DatabaseReader } from '../providers/database-provider';
import type { DatabasesDatabase, Tx } from './database.store';
import type { DatabasePasswords } from './database-password';

/** The parts that a handler is given: they read the outside world and never change it. */
export interface HandlerContext extends WorkflowContext<Tx> {
  database: DatabasesDatabase;
  quota: QuotaRule;
  provider: DatabaseReader;
  passwords: DatabasePasswords;
}
