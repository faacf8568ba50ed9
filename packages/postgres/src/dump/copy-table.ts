import { once } from 'node:events';
import { finished } from 'node:stream/promises';
import type pg from 'pg';
import { from as copyFrom, to as copyTo } from 'pg-copy-streams';
import type { TimeBudget } from '../session/time-budget';
import { asTransferError } from '../session/transfer-error';
import type { Section, TableEntry } from './dump-format';
import { qualify, quoteName } from './list-tables';

function target(table: TableEntry, place = qualify(table)): string {
  // COPY does not accept an empty column list, so a table without columns to copy gets no list.
  const columns = table.columns.length > 0 ? ` (${table.columns.map(quoteName).join(', ')})` : '';
  return `${place}${columns}`;
}

export interface Copied {
  rows: number;
  bytes: number;
}

/**
 * Yields the rows of a table as COPY data. COPY refuses views. So if a view has replaced the table, none of the view's
 * functions runs. `onEnd` is called only after the last row. If the consumer stops early, the session is ended, because
 * the COPY would otherwise go on.
 */
export async function* copyOut(
  client: pg.Client,
  table: TableEntry,
  onEnd: (copied: Copied) => void,
): AsyncGenerator<Buffer> {
  const stream = client.query(
    copyTo(`copy ${target(table)} to stdout (format ${table.format})`, { highWaterMark: 256 * 1024 }),
  );
  let bytes = 0;
  let isLeft = true;
  try {
    for await (const part of stream) {
      const buffer: Buffer = part;
      bytes += buffer.length;
      yield buffer;
    }
    isLeft = false;
  } catch (error) {
    isLeft = false;
    throw error;
  } finally {
    if (isLeft) client.connection.stream.destroy(new Error(`the rows of ${qualify(table)} were not read to their end`));
  }
  // The stream may end before Postgres' report of the number of rows arrives. The answer to an empty query arrives
  // after that report.
  if (stream.rowCount === 0) await client.query('');
  onEnd({ rows: stream.rowCount, bytes });
}

export interface CopyInOptions {
  /**
   * The qualified name of a partitioned table, into which the rows go so that Postgres finds each row's partition.
   * Without `root`, the rows go into the table itself.
   */
  root?: string | undefined;
  onBytes: (bytes: number) => void;
  budget?: TimeBudget;
}

/** Fills a table from a section. On any error no row remains. Throws `copy_failed`, `stalled`. */
export async function copyIn(
  client: pg.Client,
  table: TableEntry,
  section: Section,
  { onBytes, budget, root }: CopyInOptions,
): Promise<Copied> {
  const object = `table ${qualify(table)}`;
  const spend = <T>(work: Promise<T>): Promise<T> => (budget === undefined ? work : budget.spend(object, work));
  let bytes = 0;
  try {
    const stream = client.query(copyFrom(`copy ${target(table, root)} from stdin (format ${table.format})`));
    const done = finished(stream);
    // A rejection before the first `await` of `done` must not count as unhandled.
    done.catch(() => undefined);
    try {
      for await (const part of section.content) {
        bytes += part.length;
        onBytes(part.length);
        budget?.allowRows(part.length);
        if (!stream.write(part)) await spend(Promise.race([once(stream, 'drain'), done]));
      }
      stream.end();
    } catch (error) {
      stream.destroy(error instanceof Error ? error : new Error(String(error)));
      throw error;
    }
    await spend(done);
    return { rows: stream.rowCount, bytes };
  } catch (error) {
    throw asTransferError('copy_failed', `${section.path} into ${qualify(table)}`, error, { object });
  }
}
