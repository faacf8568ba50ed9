import type { Pager } from '@drydock/service/http/paging';
import type { KeySecrets } from './api-keys/api-key.secret';
import type { KeysDatabase } from './database.store';

/** What a handler may use. */
export interface HandlerContext {
  database: KeysDatabase;
  pager: Pager;
  secrets: KeySecrets;
  /** How long a change of what a key may do waits before it is answered: longer than any gateway trusts a verification. */
  revocationWaitMs: number;
}
