import type pg from 'pg';
import { checkExtensions, checkTarget } from './check-target';
import type { Copied } from './copy-table';
import { writeLargeObjects } from './large-objects';
import { qualify } from './list-tables';
import { type LoadProgress, loadTables } from './load-tables';
import { type DumpManifest, manifestSchema, readJson, sequencesSchema, type TablesFile, tablesSchema } from './manifest';
import { dataPath, readText, type Section, sectionPaths } from './section';
import { SectionReader } from './section-reader';
import { openSession, type Session } from './session';
import { type Statement, splitStatements } from './split-statements';
import { extensionOf, judgeStatement } from './statement.rules';
import { asTransferError, TransferError } from './transfer-error';

export interface LoadRequest {
  /** The unprivileged role that owns the empty database; every object will be its own. */
  url: string;
  sections: AsyncIterable<Section>;
  /** The role itself may make none: sees to it that those of these names are there, before anything of the dump is run. Left out, they must be there. */
  makeRoles?: (names: string[]) => Promise<void>;
  signal?: AbortSignal | undefined;
  onProgress?: (progress: LoadProgress) => void;
}

const schemaBytesMax = 64 * 1024 * 1024;
/** A third connection gained nothing on two cores. */
const connections = 2;

async function readStatements(reader: SectionReader, path: string): Promise<Statement[]> {
  const statements = splitStatements(await readText(await reader.expect(path), schemaBytesMax));
  return statements.filter((statement) => judgeStatement(statement) === 'run');
}

/** By the extended protocol, which refuses two commands in one text: Postgres itself proves that we split and judged what it executes. */
async function execute(client: pg.Client, statements: Statement[]): Promise<void> {
  for (const { text, outline } of statements) {
    // pg's types do not know the mode that its documentation names.
    const query: pg.QueryConfig & { queryMode: 'extended' } = { text, queryMode: 'extended' };
    try {
      await client.query(query);
    } catch (error) {
      throw asTransferError('statement_failed', outline.slice(0, 120), error);
    }
  }
}

async function loadSequences(client: pg.Client, reader: SectionReader): Promise<void> {
  for (const entry of await readJson(await reader.expect(sectionPaths.sequences), sequencesSchema)) {
    await client
      .query('select pg_catalog.setval($1::regclass, $2::bigint, $3::boolean)', [qualify(entry), entry.last_value, entry.is_called])
      .catch((error: unknown) => {
        throw asTransferError('statement_failed', `sequence ${qualify(entry)}`, error);
      });
  }
}

function compareCounts(head: TablesFile, manifest: DumpManifest, copied: Copied[], largeObjects: number): void {
  const isSame = manifest.tables.length === head.tables.length && manifest.large_objects === largeObjects;
  const wrong = manifest.tables.findIndex((table, index) => table.rows !== copied[index]?.rows || table.name !== head.tables[index]?.name);
  if (!isSame || wrong >= 0) throw new TransferError('counts_differ', `the manifest differs from what was loaded at table ${wrong}`);
}

async function loadAll(reader: SectionReader, sessions: Session[], request: LoadRequest): Promise<DumpManifest> {
  const client = sessions[0]?.client;
  if (client === undefined) throw new Error('no connection');
  await checkTarget(client);
  const head = await readJson(await reader.expect(sectionPaths.tables), tablesSchema);
  const pre = await readStatements(reader, sectionPaths.schemaPre);
  const post = await readStatements(reader, sectionPaths.schemaPost);
  await checkExtensions(
    client,
    [...pre, ...post].map(extensionOf).filter((name) => name !== null),
  );
  if (head.policy_roles.length > 0) await request.makeRoles?.(head.policy_roles);
  await execute(client, pre);
  const copied = await loadTables({
    tables: head.tables,
    sessions,
    nextSection: (index) => reader.expect(dataPath(index)),
    onProgress: request.onProgress ?? (() => undefined),
  });
  await loadSequences(client, reader);
  const largeObjects = await writeLargeObjects(client, (await reader.expect(sectionPaths.largeObjects)).content);
  const manifest = await readJson(await reader.expect(sectionPaths.manifest), manifestSchema);
  await reader.expectEnd();
  compareCounts(head, manifest, copied, largeObjects);
  await execute(client, post);
  await client.query('analyze');
  return manifest;
}

/**
 * Loads a dump into an empty database as its unprivileged owner: schema, tables by COPY over two connections, sequences, large objects,
 * indexes, constraints, triggers, materialised views, ANALYZE. Returns the manifest after comparing its counts with what was loaded.
 * The whole schema is judged before its first statement runs. After an error half a database may be there: drop it, it was never anyone's.
 * Throws {@link TransferError}, or the signal's reason.
 */
export async function loadDatabase(request: LoadRequest): Promise<DumpManifest> {
  const { url, signal } = request;
  const reader = new SectionReader(request.sections);
  const sessions: Session[] = [];
  try {
    for (let opened = 0; opened < connections; opened++) {
      const session = await openSession(url, signal);
      sessions.push(session);
      await session.client.query("set check_function_bodies = off; set client_min_messages = warning; set maintenance_work_mem = '256MB'");
    }
    return await loadAll(reader, sessions, request);
  } catch (error) {
    signal?.throwIfAborted();
    throw error;
  } finally {
    await Promise.all(sessions.map((session) => session.close()));
    await reader.close();
  }
}
