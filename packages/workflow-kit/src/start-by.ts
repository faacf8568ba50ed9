import type { Sql } from '@drydock/service/database/sql';

/** How long a request waits for a worker, in seconds (decisions.md 1): then the work is cancelled, and nothing was started. */
export const startWithinSeconds = 10;

/** How long a request waits to know: past the time by which the work must have been taken up, so that it is decided either way. */
export const startDecidedMs = startWithinSeconds * 1_000 + 500;

/** Until when work that a request waits for must have been taken up, by Postgres' clock: nobody else's decides. */
export async function readStartBy(sql: Sql): Promise<Date> {
  const [row] = await sql.query<{ start_by: Date }>('SELECT clock_timestamp() + make_interval(secs => $1::float8) AS start_by', [
    startWithinSeconds,
  ]);
  if (row === undefined) throw new Error('Postgres did not tell the time');
  return row.start_by;
}
