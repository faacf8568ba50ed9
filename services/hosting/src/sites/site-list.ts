import type { Caller } from '@drydock/service/access';
import { listFilter, type Page, type PageRequest } from '@drydock/service/http';
import type { HandlerContext } from '../context/context';

interface ListRequest {
  caller: Caller;
  params: { siteId: string };
  now: Date;
  /** A request without a query gets the first page. */
  query?: { limit?: string | undefined; cursor?: string | undefined } | undefined;
}

/** The requested page of a site's list, and a function that makes it from rows. */
export interface ListPage {
  asked: PageRequest;
  now: Date;
  /** Makes the page from up to `asked.limit + 1` rows behind `asked.after`. */
  pageOf<Row extends { id: string }, Item>(rows: readonly Row[], view: (row: Row) => Item): Page<Item>;
}

/** The page of the site's list with the id `list`. Throws 422 `invalid_limit` or `invalid_cursor`. */
export function readListPage({ pager }: Pick<HandlerContext, 'pager'>, list: string, request: ListRequest): ListPage {
  const { caller, params, now, query = {} } = request;
  const binding = { list, keyId: caller.keyId, filter: listFilter(caller, query, params.siteId) };
  const asked = pager.read(query, binding, now);
  return {
    asked,
    now,
    pageOf: (rows, view) => pager.pageOf(rows, asked, binding, now, { positionOf: ({ id }) => id, view }),
  };
}
