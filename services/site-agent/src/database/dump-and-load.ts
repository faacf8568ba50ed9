import { findingsOfMysql } from '@drydock/agent/database';
import type { ProgramDatabase, StageResult } from '@drydock/agent/site';
import type { OpenedEntry } from '@drydock/archive';
import { dumpDatabase as dumpMariadb, emptyServer, loadDatabase as loadMariadb, openAdmin } from '@drydock/mysql';
import {
  dumpDatabase as dumpPostgres,
  loadDatabase as loadPostgres,
  openSession,
  sectionsInTurn,
} from '@drydock/postgres';

type Postgres = Extract<ProgramDatabase, { engine: 'postgres' }>;
type Mariadb = Extract<ProgramDatabase, { engine: 'mariadb' }>;

/** A section of a dump. It has the same form for both engines. */
interface Section {
  path: string;
  content: AsyncIterable<Buffer>;
}

/** The sections of a dump, all of the same moment. */
export function dumpOf(database: ProgramDatabase, signal: AbortSignal): AsyncIterable<Section> {
  if (database.engine === 'postgres') return dumpPostgres({ url: database.url, signal });
  return dumpMariadb({ admin: database.login, flavour: 'mariadb', release: database.release, signal });
}

/**
 * Loads an archive's dump into a database in which nobody has had a session yet. Resolves with the differences from the
 * original once the database is on disk.
 */
export function loadInto(
  database: ProgramDatabase,
  entries: AsyncGenerator<OpenedEntry>,
  signal: AbortSignal,
): Promise<StageResult['database']> {
  return database.engine === 'postgres'
    ? loadToPostgres(database, entries, signal)
    : loadToMariadb(database, entries, signal);
}

async function loadToPostgres(
  { url, role }: Postgres,
  entries: AsyncGenerator<OpenedEntry>,
  signal: AbortSignal,
): Promise<StageResult['database']> {
  if (role === null) throw new Error('a load acts as a role');
  const { findings } = await loadPostgres({ url, role, sections: sectionsInTurn(entries), signal });
  await flush(url, role);
  return findings.flatMap(({ kind, ...found }) => (kind === 'refused' ? [] : [{ kind, ...found }]));
}

/** The load commits without waiting for the disk. One commit that waits also brings all earlier commits to disk. */
async function flush(url: string, role: string): Promise<void> {
  const { client, close } = await openSession(url, { purpose: 'load', role });
  try {
    await client.query('set synchronous_commit = on');
    await client.query("select pg_catalog.pg_logical_emit_message(true, 'drydock', 'staged')");
  } finally {
    await close();
  }
}

/** Empties the server first, because a new server already has the database and the account that the dump contains. */
async function loadToMariadb(
  { login, ...server }: Mariadb,
  entries: AsyncGenerator<OpenedEntry>,
  signal: AbortSignal,
): Promise<StageResult['database']> {
  const admin = await openAdmin(login, server.engine);
  try {
    await emptyServer(admin);
  } finally {
    await admin.close();
  }
  const load = {
    admin: login,
    flavour: server.engine,
    sections: sectionsInTurn(entries),
    areAccountsLocked: true,
    signal,
  };
  const { findings } = await loadMariadb(load);
  return [...findingsOfMysql(findings)];
}
