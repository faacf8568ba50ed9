import type pg from 'pg';
import { z } from 'zod';
import { openSession } from '../session/session';
import {
  asTransferError,
  isPermanentForReader,
  isPermanentSqlState,
  sqlStateOf,
  TransferError,
} from '../session/transfer-error';
import { computedColumns, hashIfPossible } from './computed-columns';
import { type Copied, copyOut } from './copy-table';
import { type DatabaseProperties, readProperties } from './database-properties';
import { dumpBothSections } from './dump-schema';
import { readLargeObjects } from './large-objects';
import { listSequences, listTables, lockTables, qualify } from './list-tables';
import type { ComputedColumns, DumpManifest, TableEntry, TablesFile } from './manifest';
import { dataPath, type Section, sectionPaths, textSection } from './section';

export interface DumpRequest {
  /**
   * The login of a reader, which may read everything, or of the owner where no table forces row security. Without TLS.
   */
  url: string;
  /** The dump records who owns what. Without it, everything belongs to whoever loads it. */
  withOwners?: boolean;
  signal?: AbortSignal | undefined;
}

const snapshotSchema = z.object({ id: z.string(), version: z.coerce.number(), encoding: z.string() });
const snapshotSql = `select pg_catalog.pg_export_snapshot() as id, current_setting('server_version_num') as version,
  current_setting('server_encoding') as encoding`;

const policyRolesSql = `select distinct r.rolname as name from pg_catalog.pg_policy p
  cross join unnest(p.polroles) as named(role)
  join pg_catalog.pg_roles r on r.oid = named.role order by 1`;

async function listPolicyRoles(client: pg.Client): Promise<string[]> {
  const rows = z.array(z.object({ name: z.string() })).parse((await client.query(policyRolesSql)).rows);
  return rows.map(({ name }) => name);
}

/** The most attempts to find a moment in which nobody drops or alters the objects that are about to be read. */
const attemptsMax = 20;
/**
 * Codes of errors that may be gone at the next attempt: a lock timeout, and the one that Postgres gives for an object
 * that was dropped meanwhile.
 */
const passingCodes: ReadonlySet<unknown> = new Set(['55P03', 'XX000']);

/**
 * A table or a view that was dropped after it was listed, or for whose lock an ALTER waits, can be read at the next
 * attempt.
 */
function isPassing(error: unknown): boolean {
  const code = sqlStateOf(error instanceof TransferError && error.cause !== undefined ? error.cause : error);
  if (code === 'dump_failed') return error instanceof TransferError && !error.isPermanent;
  return passingCodes.has(code) || (isPermanentSqlState(code) && !isPermanentForReader(code));
}

interface Moment {
  head: TablesFile;
  pre: string;
  post: string;
  properties: DatabaseProperties;
}

/**
 * A moment of the database: its snapshot is open, and its tables are locked in `client`. Only that session reads them.
 * Another of our sessions would queue up behind a client that waits for these locks, such as a TRUNCATE, and would wait
 * for ever. pg_dump takes no locks, except those of views.
 */
async function beginMoment(client: pg.Client, request: DumpRequest, attempt = 1): Promise<Moment> {
  const { url, signal, withOwners = false } = request;
  try {
    await client.query('begin isolation level repeatable read read only');
    const { id: snapshotId, version, encoding } = snapshotSchema.parse((await client.query(snapshotSql)).rows[0]);
    const tables = await listTables(client);
    await lockTables(client);
    const policyRoles = await listPolicyRoles(client);
    const properties = await readProperties(client, withOwners);
    const owned = withOwners ? { isComplete: true, isMadeByOwners: true } : {};
    const { pre, post } = await dumpBothSections({
      url,
      snapshotId,
      areTablesLocked: true,
      tables: tables.length,
      signal,
      ...owned,
    });
    const format = withOwners ? 3 : 2;
    const head: TablesFile = {
      format_version: format,
      server_version_num: version,
      encoding,
      policy_roles: policyRoles,
      tables,
    };
    return { head, pre, post, properties };
  } catch (error) {
    if (!isPassing(error)) throw error;
    if (attempt === attemptsMax)
      throw asTransferError('dump_failed', 'somebody drops or alters tables again and again', error, {
        isPermanent: false,
      });
    await client.query('rollback');
    return beginMoment(client, request, attempt + 1);
  }
}

/** Contents that share one session: each waits until the one before it was read. */
function oneAtATime(): (content: AsyncIterable<Buffer>) => AsyncGenerator<Buffer> {
  let turn: Promise<void> = Promise.resolve();
  return async function* (content) {
    const before = turn;
    let end = (): void => undefined;
    turn = new Promise((resolve) => {
      end = resolve;
    });
    await before;
    try {
      yield* content;
    } finally {
      end();
    }
  };
}

/** Passes the rows of a table on; an error of Postgres names the table. `andThen` reads the rest of the table. */
async function* named(
  table: TableEntry,
  rows: AsyncIterable<Buffer>,
  andThen: () => Promise<void>,
): AsyncGenerator<Buffer> {
  try {
    yield* rows;
    await andThen();
  } catch (error) {
    throw asTransferError('dump_failed', `rows of ${qualify(table)}`, error, { object: `table ${qualify(table)}` });
  }
}

type Read = Copied & { computed?: ComputedColumns };

function manifestOf(head: TablesFile, copied: (Read | undefined)[], largeObjects: number): DumpManifest {
  const tables = head.tables.map((table, index) => {
    const counts = copied[index];
    if (counts === undefined) throw new TransferError('dump_failed', `${dataPath(index)} was not read to its end`);
    return { ...table, ...counts };
  });
  return { ...head, tables, large_objects: largeObjects };
}

/**
 * One database as a stream of sections, all from one repeatable-read snapshot: tables.json, schema-pre.sql,
 * schema-post.sql, database.json, data/<n>.copy, sequences.json, large-objects.bin, manifest.json. Contents are read
 * one after the other, and all of them before the manifest's. Writers are not disturbed. DDL waits until the dump has
 * ended. Throws {@link TransferError} `dump_failed`, errors of Postgres, or the signal's reason.
 */
export async function* dumpDatabase(request: DumpRequest): AsyncGenerator<Section> {
  const session = await openSession(request.url, { purpose: 'read', signal: request.signal });
  const { client } = session;
  try {
    const { head, pre, post, properties } = await beginMoment(client, request);
    yield textSection(sectionPaths.tables, () => Promise.resolve(JSON.stringify(head)));
    yield textSection(sectionPaths.schemaPre, () => Promise.resolve(pre));
    yield textSection(sectionPaths.schemaPost, () => Promise.resolve(post));
    yield textSection(sectionPaths.properties, () => Promise.resolve(JSON.stringify(properties)));
    const copied: (Read | undefined)[] = head.tables.map(() => undefined);
    const computed = await computedColumns(client);
    const inTurn = oneAtATime();
    for (const [index, table] of head.tables.entries()) {
      const onEnd = (counts: Copied): void => {
        copied[index] = counts;
      };
      const hash = async (): Promise<void> => {
        const found = await hashIfPossible(client, table, computed.get(qualify(table)));
        if (found !== undefined) Object.assign(copied[index] ?? {}, { computed: found });
      };
      yield { path: dataPath(index), content: inTurn(named(table, copyOut(client, table, onEnd), hash)) };
    }
    let largeObjects = 0;
    yield textSection(sectionPaths.sequences, async () => JSON.stringify(await listSequences(client)));
    yield { path: sectionPaths.largeObjects, content: readLargeObjects(client, () => void largeObjects++) };
    yield textSection(sectionPaths.manifest, () =>
      Promise.resolve(JSON.stringify(manifestOf(head, copied, largeObjects))),
    );
  } finally {
    await session.close();
  }
}
