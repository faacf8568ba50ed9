import type { Pager } from '@drydock/service/http/paging';
import type { AgencyDatabase } from './database.store';

/** What a handler may use. */
export interface HandlerContext {
  database: AgencyDatabase;
  pager: Pager;
}
