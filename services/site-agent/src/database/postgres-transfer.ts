import type { CountRowsSpec, ProgramDatabase, StageResult } from '@drydock/agent/site';
import { entriesInTurn, type OpenedEntry } from '@drydock/archive';
import { dumpDatabase, isPermanentSqlState, loadDatabase, openSession, TransferError } from '@drydock/postgres';
import pg from 'pg';

/** A section of a dump. It has the same form for both engines. */
interface Section {
  path: string;
  content: AsyncIterable<Buffer>;
}

/** The fields that the errors of both engines have. */
type TransferFailure = Pick<TransferError, 'object' | 'reason' | 'isPermanent'> & { code: string };

/** Reads and fills the databases of one engine for a job. Throws for a database of another engine. */
export interface SiteTransfer {
  /** Yields the sections of a dump. All of them show the database at the same moment. */
  dump(database: ProgramDatabase, signal: AbortSignal): AsyncIterable<Section>;
  /**
   * Loads an archive's dump into a database in which nobody has had a session yet. Resolves with the differences from
   * the original once the database is on disk.
   */
  load(
    database: ProgramDatabase,
    entries: AsyncGenerator<OpenedEntry>,
    signal: AbortSignal,
  ): Promise<StageResult['database']>;
  /** Returns the number of rows that the login in `url` sees in the table, or null if the table does not exist. */
  countRows(url: string, table: CountRowsSpec): Promise<number | null>;
  /** Describes an error about the database. Returns null for any other error. */
  failureOf(error: unknown): TransferFailure | null;
}

const answerMs = 30_000;
const unknownTable = '42P01';

export const transfer: SiteTransfer = {
  dump(database, signal) {
    if (database.engine !== 'postgres') throw new Error('the database is not of Postgres');
    return dumpDatabase({ url: database.url, signal });
  },

  async load(database, entries, signal) {
    if (database.engine !== 'postgres') throw new Error('the database is not of Postgres');
    const { url, role } = database;
    if (role === null) throw new Error('a load acts as a role');
    const { findings } = await loadDatabase({ url, role, sections: entriesInTurn(entries), signal });
    await flush(url, role);
    return findings.flatMap(({ kind, ...found }) => (kind === 'refused' ? [] : [{ kind, ...found }]));
  },

  async countRows(connectionString, { schema, name }) {
    const connection = new pg.Client({
      connectionString,
      connectionTimeoutMillis: answerMs,
      statement_timeout: answerMs,
    });
    connection.on('error', () => undefined);
    await connection.connect();
    try {
      const table = `${connection.escapeIdentifier(schema)}.${connection.escapeIdentifier(name)}`;
      const { rows } = await connection.query<{ count: string }>(`SELECT pg_catalog.count(*) FROM ONLY ${table}`);
      return Number(rows[0]?.count ?? 0);
    } catch (error) {
      if (error instanceof Error && 'code' in error && error.code === unknownTable) return null;
      throw error;
    } finally {
      await connection.end();
    }
  },

  failureOf(error) {
    if (error instanceof TransferError) return error;
    const isPermanent = error instanceof Error && 'code' in error && isPermanentSqlState(error.code);
    return isPermanent ? { code: 'dump_failed', object: null, reason: error.message, isPermanent } : null;
  },
};

/** The load's commits do not wait for the disk. One commit that waits brings all commits before it to disk as well. */
async function flush(url: string, role: string): Promise<void> {
  const { client, close } = await openSession(url, { purpose: 'load', role });
  try {
    await client.query('set synchronous_commit = on');
    await client.query("select pg_catalog.pg_logical_emit_message(true, 'drydock', 'staged')");
  } finally {
    await close();
  }
}
