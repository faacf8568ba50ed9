import type { Pager } from '@drydock/service/http/paging';
import type { KeySecrets } from './api-keys/api-key.secret';
import type { KeysDatabase } from './database.store';

/** What a handler may use. */
export interface HandlerContext {
  database: KeysDatabase;
  pager: Pager;
  secrets: KeySecrets;
  /** Resolves when every gateway has heard of a change of what a key may do, so that it may be answered. */
  gatewaysHave(): Promise<void>;
}
