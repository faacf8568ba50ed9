import type { Pager } from '@drydock/service/http';
import type { AgencyDatabase } from './database.store';

/** The parts that a handler is given. */
export interface HandlerContext {
  database: AgencyDatabase;
  pager: Pager;
}
