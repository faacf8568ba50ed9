import type { Pager } from '@drydock/service-kit/paging';
import type { AgencyDatabase } from './database.store';

/** What a handler may use. */
export interface HandlerContext {
  database: AgencyDatabase;
  pager: Pager;
}
