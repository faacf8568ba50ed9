import type { Connection, Submittable } from 'pg';

/** How long one query of a page may take. */
export const pageStatementMs = 2_000;
/** How many of its rows are kept. */
export const pageRowsMax = 1_000;

const begin = 'begin isolation level repeatable read read only';
/** The time limit is set before each query, because the one before may have changed it. */
const limit = `set local statement_timeout = ${pageStatementMs}`;
/** The rollback undoes everything that a page has set, except for what these undo. So the next page starts afresh. */
const clear = ['rollback', 'deallocate all', 'select pg_catalog.pg_advisory_unlock_all()', 'discard sequences'];

/** The result of a query, every value as the server writes it. */
export interface QueryRows {
  /** The index of each column in a row. */
  columns: Map<string, number>;
  rows: (string | null)[][];
}

/** One statement of the page's session; `rows` for one of the page's own. */
interface Step {
  sql: string;
  rows: QueryRows | null;
}

/** A parameter of earlier versions of pg, which its types still require. */
const noMore = true;

/**
 * Runs all queries of one page in one read-only transaction, in one round trip. Each uses the extended protocol, which
 * takes one statement only, so that a page cannot end the transaction and go on. The first rows of each are kept; the
 * rest is not fetched.
 */
class PageQueries implements Submittable {
  private readonly steps: Step[];
  private readonly done: (error: Error | null) => void;
  private at = 0;

  constructor(steps: Step[], done: (error: Error | null) => void) {
    this.steps = steps;
    this.done = done;
  }

  submit(connection: Connection): void {
    connection.stream.cork();
    for (const { sql, rows } of this.steps) {
      connection.parse({ name: '', text: sql, types: [] }, noMore);
      connection.bind({}, noMore);
      if (rows !== null) connection.describe({ type: 'P', name: '' }, noMore);
      // The types want the number as a string, which pg would not send.
      Reflect.apply(connection.execute, connection, [{ rows: pageRowsMax }]);
    }
    connection.sync();
    connection.stream.uncork();
  }

  handleRowDescription({ fields }: { fields: { name: string }[] }): void {
    for (const [place, { name }] of fields.entries()) this.steps[this.at]?.rows?.columns.set(name, place);
  }

  handleDataRow({ fields }: { fields: (string | null)[] }): void {
    this.steps[this.at]?.rows?.rows.push(fields);
  }

  handleCommandComplete(): void {
    this.at += 1;
  }

  /** The query has more rows than a page shows. */
  handlePortalSuspended(): void {
    this.at += 1;
  }

  handleEmptyQuery(): void {
    this.at += 1;
  }

  handleError(error: Error): void {
    this.done(error);
  }

  handleReadyForQuery(): void {
    this.done(null);
  }
}

/** Runs the queries of a page. Afterwards the session is as new; after an error it must be closed. */
export async function runPageQueries(
  client: { query(queries: Submittable): unknown },
  queries: readonly string[],
): Promise<QueryRows[]> {
  const results = queries.map((): QueryRows => ({ columns: new Map(), rows: [] }));
  const own = (sql: string): Step => ({ sql, rows: null });
  const asked = queries.flatMap((sql, place): Step[] => [own(limit), { sql, rows: results[place] ?? null }]);
  await new Promise<void>((resolve, reject) => {
    const done = (error: Error | null): void => (error === null ? resolve() : reject(error));
    client.query(new PageQueries([own(begin), ...asked, ...clear.map(own)], done));
  });
  return results;
}
